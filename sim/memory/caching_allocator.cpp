#include "sim/memory/caching_allocator.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/base/hash.h"

namespace sim::memory {
namespace {

constexpr Bytes kMebi{1 << 20};

// Index of the highest set bit.
int log2_floor(std::int64_t n) { return 63 - std::countl_zero(static_cast<std::uint64_t>(n)); }

// roundup_power2_next_division(): the space between two powers of two cut into equal divisions. A
// single division leaves the size as it is, not even rounded to 512 bytes (releases up to 2.4).
Bytes round_to_division(Bytes size, std::int64_t divisions) {
  if (size.count <= 4 || divisions <= 1) return size;
  if (std::has_single_bit(static_cast<std::uint64_t>(size.count))) return size;
  const std::int64_t power = std::int64_t{1} << log2_floor(size.count);
  const std::int64_t quantum = power >> log2_floor(divisions);
  if (quantum == 0) return Bytes{power << 1};
  return round_up(size, Bytes{quantum});
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorProfile& profile,
                                   const AllocatorSettings& settings, Driver& driver,
                                   Bytes device_total)
    : profile_(profile), settings_(settings), driver_(&driver), device_total_(device_total) {
  pools_[0].small = true;
  if (!profile_.oversize_slack_is_option) settings_.max_non_split_rounding = Bytes{20'971'520};
  if (settings_.per_process_memory_fraction) {
    set_memory_fraction(*settings_.per_process_memory_fraction);
  }
}

void CachingAllocator::set_memory_fraction(double fraction) {
  allowed_ = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(device_total_.count))};
}

Bytes CachingAllocator::round_size(Bytes requested) const {
  if (requested < profile_.min_block) return profile_.min_block;
  if (requested <= settings_.roundup_bypass_threshold) {
    const auto& table = settings_.roundup_power2_divisions;
    const int interval = log2_floor(requested.count) - log2_floor(kMebi.count);
    const int last = static_cast<int>(table.size()) - 1;
    const std::int64_t divisions = table[static_cast<std::size_t>(std::clamp(interval, 0, last))];
    const std::int64_t least = profile_.single_division_rounds ? 2 : 1;
    if (divisions >= least && requested > profile_.min_block * divisions) {
      return round_to_division(requested, divisions);
    }
  }
  return round_up(requested, profile_.min_block);
}

Bytes CachingAllocator::segment_size(Bytes rounded) const {
  if (rounded <= profile_.small_size) return profile_.small_segment;
  if (rounded < profile_.min_large_alloc) return settings_.large_segment_size;
  return round_up(rounded, profile_.round_large);
}

AllocResult CachingAllocator::allocate(Bytes requested, Stream stream) {
  CHECK(requested.count > 0 && requested <= kLargestRequest, "a request outside the contract");
  CHECK(stream < kMaxStreams, "too many streams");
  Request request;
  request.size = round_size(requested);
  request.segment_size = segment_size(request.size);
  request.stream = stream;
  Pool& pool = pools_[request.size <= profile_.small_size ? 0 : 1];
  if (pool.free.size() <= stream) {
    pool.free.resize(stream + std::size_t{1});
    pool.unmapped.resize(stream + std::size_t{1});
  }
  AllocResult result;
  result.segment_size = request.segment_size;
  result.block = take_best_fit(pool, request);
  if (!result.block.valid()) {
    result.block = obtain_memory(pool, request, result);
    if (!result.block.valid()) {
      ++stats_.num_ooms;
      note(AllocatorAction::oom, 0, request.size, stream);
      return result;
    }
    result.new_segment = true;
  }
  result.ok = true;
  hand_out(pool, result.block, request, requested);
  return result;
}

// get_free_block()
BlockId CachingAllocator::take_best_fit(Pool& pool, const Request& request) {
  if (collects_garbage()) ++pool.searches;
  FreeBlocks& free = pool.free[request.stream];
  FreeBlocks::Position at = free.lower_bound(request.size);
  if (at == free.end()) return {};
  if (settings_.expandable_segments) {
    // A block at the growing end counts as big as it could become: inner holes are preferred.
    for (auto after = free.next(at);
         blocks_[free[at].block].range != kNotExpandable && after != free.end() &&
         expandable_size(blocks_[free[after].block]) < expandable_size(blocks_[free[at].block]);
         after = free.next(after)) {
      at = after;
    }
  }
  const FreeBlocks::Entry found = free[at];
  if (request.size < settings_.max_split_size) {
    if (found.size >= settings_.max_split_size) return {};
  } else if (found.size >= request.size + settings_.max_non_split_rounding) {
    return {};
  }
  free.erase(at);
  return found.block;
}

// The sequence of malloc() after a miss. No free-memory callback is registered in a training
// process (only the collector of CUDA IPC handles is), so there is no second search.
BlockId CachingAllocator::obtain_memory(Pool& pool, const Request& request, AllocResult& result) {
  if (collects_garbage()) collect_garbage();
  BlockId block = allocate_segment(pool, request);
  if (block.valid()) return block;
  if (release_oversize(pool, request)) {
    block = allocate_segment(pool, request);
    if (block.valid()) return block;
  }
  release_cached();
  result.retried = result.synchronized = true;
  ++stats_.num_alloc_retries;
  return allocate_segment(pool, request);
}

// alloc_block()
BlockId CachingAllocator::allocate_segment(Pool& pool, const Request& request) {
  if (allowed_ && stats_.reserved.current + request.segment_size > *allowed_) return {};
  if (settings_.expandable_segments) return grow_expandable(pool, request);
  const auto address = driver_->allocate_segment(request.segment_size, request.stream);
  if (!address) return {};
  stats_.segments.add(1);
  stats_.reserved.add(request.segment_size);
  note(AllocatorAction::segment_alloc, *address, request.segment_size, request.stream);
  Block block;
  block.address = *address;
  block.size = request.segment_size;
  block.stream = request.stream;
  block.small = pool.small;
  return new_block(block);
}

bool CachingAllocator::should_split(const Block& block, Bytes size) const {
  const Bytes remaining = block.size - size;
  if (block.small || settings_.expandable_segments) return remaining >= profile_.min_block;
  return size < settings_.max_split_size && remaining > profile_.small_size;
}

// alloc_found_block(): the lower part is handed out, the rest goes back to the pool.
void CachingAllocator::hand_out(Pool& pool, BlockId id, const Request& request, Bytes requested) {
  const bool counts_split = blocks_[id].range == kNotExpandable;
  const bool was_split = is_split(blocks_[id]);
  if (should_split(blocks_[id], request.size)) {
    Block rest = blocks_[id];
    rest.address += static_cast<Address>(request.size.count);
    rest.size -= request.size;
    rest.previous = id;
    const BlockId rest_id = new_block(rest);
    if (rest.next.valid()) blocks_[rest.next].previous = rest_id;
    blocks_[id].next = rest_id;
    blocks_[id].size = request.size;
    cache(pool, rest_id);
    if (counts_split && was_split) stats_.inactive_split.remove(request.size);
    if (counts_split && !was_split) stats_.inactive_split.add(rest.size);
  } else if (was_split && counts_split) {
    stats_.inactive_split.remove(blocks_[id].size);
  }
  Block& block = blocks_[id];
  block.allocated = true;
  block.requested = requested;
  stats_.allocations.add(1);
  stats_.allocated.add(block.size);
  stats_.active.add(block.size);
  stats_.requested.add(requested);
  note(AllocatorAction::alloc, block.address, block.requested, block.stream);
}

void CachingAllocator::record_stream(BlockId id, Stream stream) {
  CHECK(stream < kMaxStreams, "too many streams");
  Block& block = blocks_[id];
  CHECK(block.alive && block.allocated, "record_stream of a block that is not in use");
  if (stream != block.stream) block.used_on |= std::uint64_t{1} << stream;
}

bool CachingAllocator::free(BlockId id) {
  Block& block = blocks_[id];
  CHECK(block.alive && block.allocated, "free of a block that is not in use");
  block.allocated = false;
  stats_.allocations.remove(1);
  stats_.allocated.remove(block.size);
  note(AllocatorAction::free_requested, block.address, block.requested, block.stream);
  if (block.used_on != 0) {
    block.waiting = true;
    waiting_.push_back(id);
    return false;
  }
  make_free(id);
  return true;
}

void CachingAllocator::complete(BlockId id) {
  Block& block = blocks_[id];
  CHECK(block.alive && block.waiting, "completion of a block that does not wait");
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), id));
  block.waiting = false;
  block.used_on = 0;
  make_free(id);
}

void CachingAllocator::empty_cache() { release_cached(); }

// free_block(): merges with free neighbours and enters the pool.
void CachingAllocator::make_free(BlockId id) {
  Block& block = blocks_[id];
  Pool& pool = pool_of(block);
  stats_.active.remove(block.size);
  note(AllocatorAction::free_completed, block.address, block.requested, block.stream);
  stats_.requested.remove(block.requested);
  Bytes inactive{};
  inactive -= merge(id, block.previous);
  inactive -= merge(id, block.next);
  cache(pool, id);
  if (block.range != kNotExpandable) return;
  if (is_split(block)) inactive += block.size;
  stats_.inactive_split.add(inactive);
}

// try_merge_blocks(): joins a free neighbour to a block that is itself in no list. Returns the
// neighbour's size, or zero if they do not merge.
Bytes CachingAllocator::merge(BlockId into_id, BlockId neighbour_id) {
  if (!neighbour_id.valid()) return {};
  Block& into = blocks_[into_id];
  const Block& neighbour = blocks_[neighbour_id];
  if (neighbour.allocated || neighbour.waiting || neighbour.mapped != into.mapped) return {};
  Pool& pool = pool_of(into);
  if (neighbour.mapped) {
    uncache(pool, neighbour_id);
  } else {
    remove_unmapped(pool, neighbour_id);
  }
  if (into.previous == neighbour_id) {
    into.address = neighbour.address;
    into.previous = neighbour.previous;
    if (into.previous.valid()) blocks_[into.previous].next = into_id;
  } else {
    into.next = neighbour.next;
    if (into.next.valid()) blocks_[into.next].previous = into_id;
  }
  const Bytes size = neighbour.size;
  into.size += size;
  drop_block(neighbour_id);
  return size;
}

void CachingAllocator::cache(Pool& pool, BlockId id) {
  Block& block = blocks_[id];
  block.cached_at = pool.searches;
  pool.free[block.stream].insert({block.size, block.address, id});
}

void CachingAllocator::uncache(Pool& pool, BlockId id) {
  const Block& block = blocks_[id];
  pool.free[block.stream].erase(block.size, block.address);
}

BlockId CachingAllocator::new_block(const Block& block) {
  BlockId id;
  if (vacant_.empty()) {
    id = blocks_.push_back(block);
  } else {
    id = vacant_.back();
    vacant_.pop_back();
    blocks_[id] = block;
  }
  blocks_[id].alive = true;
  return id;
}

void CachingAllocator::drop_block(BlockId id) {
  blocks_[id].alive = false;
  vacant_.push_back(id);
}

void CachingAllocator::reset_peaks() {
  const auto reset = [](auto& counter) { counter.peak = counter.current; };
  reset(stats_.allocated);
  reset(stats_.active);
  reset(stats_.reserved);
  reset(stats_.requested);
  reset(stats_.inactive_split);
  reset(stats_.segments);
  reset(stats_.allocations);
}

std::vector<SegmentView> CachingAllocator::snapshot() const {
  std::vector<SegmentView> segments;
  for (const Block& head : blocks_) {
    const bool starts = !head.previous.valid() || !blocks_[head.previous].mapped;
    if (!head.alive || !head.mapped || !starts) continue;
    SegmentView view;
    view.address = head.address;
    view.stream = head.stream;
    view.small_pool = head.small;
    view.expandable = head.range != kNotExpandable;
    for (const Block* block = &head; block->mapped;) {
      view.size += block->size;
      view.blocks.push_back({block->address, block->size, block->requested, block->allocated,
                             block->allocated || block->waiting});
      if (!block->next.valid()) break;
      block = &blocks_[block->next];
    }
    segments.push_back(std::move(view));
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentView& a, const SegmentView& b) { return a.address < b.address; });
  return segments;
}

// A sum over the blocks, since the order of their ids tells nothing.
std::uint64_t CachingAllocator::fingerprint() const {
  const bool ages = collects_garbage();
  std::uint64_t sum = 0;
  for (const Block& block : blocks_) {
    if (!block.alive) continue;
    const int state = (block.allocated ? 1 : 0) + (block.waiting ? 2 : 0) + (block.mapped ? 4 : 0) +
                      (block.previous.valid() ? 8 : 0) + (block.small ? 16 : 0);
    Hash hash;
    hash.add(block.address).add(block.size.count).add(block.used_on).add(block.stream).add(state);
    const bool cached = !block.allocated && !block.waiting;
    if (ages && cached) hash.add(pools_[block.small ? 0 : 1].searches - block.cached_at);
    sum += hash.value();
  }
  return sum;
}

}  // namespace sim::memory
