// Giving cached memory back to the driver: garbage collection, release of oversize blocks, release
// of everything.
#include <algorithm>

#include "sim/memory/caching_allocator.h"

namespace sim::memory {

// garbage_collect_cached_blocks(): frees whole large segments that were not used for longer than
// the average, again and again, until the threshold is reached or nothing is old enough.
void CachingAllocator::collect_garbage() {
  const Bytes threshold{
      static_cast<std::int64_t>(settings_.garbage_collection_threshold *
                                static_cast<double>(allowed_.value_or(Bytes{}).count))};
  if (stats_.reserved.current <= threshold) return;
  const Bytes target = stats_.reserved.current - threshold;
  Pool& pool = pools_[1];
  std::vector<BlockId> candidates;
  std::int64_t total_age = 0;
  const auto age = [&](BlockId id) { return pool.searches - blocks_[id].cached_at; };
  for (const FreeBlocks& free : pool.free) {
    for (auto at = free.begin(); at != free.end(); at = free.next(at)) {
      const BlockId id = free[at].block;
      if (is_split(blocks_[id])) continue;
      candidates.push_back(id);
      total_age += age(id);
    }
  }
  Bytes reclaimed{};
  for (bool freed = true; freed && reclaimed < target && !candidates.empty();) {
    const double mean = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    const auto is_old = [&](BlockId id) {
      return blocks_[id].range == kNotExpandable && static_cast<double>(age(id)) >= mean;
    };
    const auto kept = std::stable_partition(candidates.begin(), candidates.end(),
                                            [&](BlockId id) { return !is_old(id); });
    freed = kept != candidates.end();
    for (auto it = kept; it != candidates.end(); ++it) {
      reclaimed += blocks_[*it].size;
      total_age -= age(*it);
      release_segment(*it);
    }
    candidates.erase(kept, candidates.end());
  }
}

// release_available_cached_blocks(): with max_split_size, one cached oversize block that is large
// enough, or else the largest ones of this stream until their sum is.
bool CachingAllocator::release_oversize(Pool& pool, const Request& request) {
  const Bytes limit = settings_.max_split_size;
  if (limit == kUnlimited) return false;
  const Bytes wanted = std::max(request.size, limit);
  const FreeBlocks& free = pool.free[request.stream];
  auto at = free.lower_bound(wanted);
  if (at != free.end() && blocks_[free[at].block].range == kNotExpandable) {
    release_segment(free[at].block);
    return true;
  }
  std::vector<BlockId> chosen;
  Bytes released{};
  while (released < wanted && at != free.begin()) {
    at = free.previous(at);
    if (free[at].size < limit) break;
    if (blocks_[free[at].block].range != kNotExpandable) continue;
    released += free[at].size;
    chosen.push_back(free[at].block);
  }
  for (const BlockId id : chosen) release_segment(id);
  return released >= wanted;
}

// release_cached_blocks(): waits for all events, then returns every segment that is one free
// block, of every stream, and every free page of expandable segments.
void CachingAllocator::release_cached() {
  while (!waiting_.empty()) complete(waiting_.front());
  release_pool(pools_[1]);
  release_pool(pools_[0]);
}

void CachingAllocator::release_pool(Pool& pool) {
  std::vector<BlockId> whole, growable;
  for (const FreeBlocks& free : pool.free) {
    for (auto at = free.begin(); at != free.end(); at = free.next(at)) {
      const BlockId id = free[at].block;
      if (blocks_[id].range != kNotExpandable) {
        growable.push_back(id);
      } else if (!is_split(blocks_[id])) {
        whole.push_back(id);
      }
    }
  }
  for (const BlockId id : whole) release_segment(id);
  for (const BlockId id : growable) unmap(id);
}

void CachingAllocator::release_segment(BlockId id) {
  const Block& block = blocks_[id];
  driver_->free_segment(block.address, block.size, block.stream);
  note(AllocatorAction::segment_free, block);
  stats_.segments.remove(1);
  stats_.reserved.remove(block.size);
  uncache(pool_of(block), id);
  drop_block(id);
}

}  // namespace sim::memory
