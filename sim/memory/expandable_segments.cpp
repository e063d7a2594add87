// Expandable segments (2.1 on): one address range per stream and pool, 9/8 of the device in size,
// behind which pages are mapped where and when they are needed.
#include <algorithm>

#include "sim/memory/caching_allocator.h"

namespace sim::memory {

// What "best fit" takes for the block's size: with the unmapped space after it.
Bytes CachingAllocator::expandable_size(const Block& block) const {
  if (!block.next.valid() || blocks_[block.next].mapped) return block.size;
  return block.size + blocks_[block.next].size;
}

// try_allocate_expandable_block(): maps pages at the lowest address where the request fits, after
// or before free blocks that are there. On failure what was mapped stays, as free blocks.
BlockId CachingAllocator::grow_expandable(Pool& pool, const Request& request) {
  BlockId candidate = find_room(pool, request);
  const Bytes first = std::min(blocks_[candidate].size, request.size);
  if (!blocks_[candidate].mapped && !map(pool, candidate, first)) return {};
  while (blocks_[candidate].size < request.size) {
    const BlockId after = blocks_[candidate].next;
    if (!after.valid()) return {};  // larger than the whole range
    const Bytes missing = request.size - blocks_[candidate].size;
    if (!map(pool, after, std::min(missing, blocks_[after].size))) return {};
    candidate = after;
  }
  uncache(pool, candidate);
  return candidate;
}

// find_expandable_block(): the lowest run of free and unmapped blocks of at least `size`, in a new
// range if there is none.
BlockId CachingAllocator::find_room(Pool& pool, const Request& request) {
  for (const BlockId unmapped : pool.unmapped[request.stream]) {
    BlockId first = unmapped;
    const BlockId before = blocks_[unmapped].previous;
    if (before.valid() && !blocks_[before].allocated && !blocks_[before].waiting) first = before;
    if (has_room(first, request.size)) return first;
  }
  const Bytes page = pool.small ? profile_.small_segment : settings_.large_segment_size;
  const Bytes size = round_up(device_total_ + device_total_ / 8, page);
  Block block;
  block.address = driver_->reserve_range(size, request.stream);
  block.size = size;
  block.stream = request.stream;
  block.small = pool.small;
  block.mapped = false;
  block.range = static_cast<std::uint32_t>(ranges_.size());
  ranges_.push_back({block.address, size, page});
  const BlockId id = new_block(block);
  add_unmapped(pool, id);
  return id;
}

bool CachingAllocator::has_room(BlockId first, Bytes size) const {
  Bytes room{};
  for (BlockId id = first; room < size && id.valid(); id = blocks_[id].next) {
    if (blocks_[id].allocated || blocks_[id].waiting) break;
    room += blocks_[id].size;
  }
  return room >= size;
}

// map_block(): puts pages behind the first `size` bytes of an unmapped block and caches them.
bool CachingAllocator::map(Pool& pool, BlockId id, Bytes size) {
  const Bytes mapped = round_up(size, ranges_[blocks_[id].range].page);
  if (!driver_->map(blocks_[id].address, mapped, blocks_[id].stream)) return false;
  note(AllocatorAction::segment_map, blocks_[id].address, mapped, blocks_[id].stream);
  remove_unmapped(pool, id);
  blocks_[id].mapped = true;
  if (mapped < blocks_[id].size) {
    Block rest = blocks_[id];
    rest.mapped = false;
    rest.address += static_cast<Address>(mapped.count);
    rest.size -= mapped;
    rest.previous = id;
    const BlockId rest_id = new_block(rest);
    if (rest.next.valid()) blocks_[rest.next].previous = rest_id;
    blocks_[id].next = rest_id;
    blocks_[id].size = mapped;
    add_unmapped(pool, rest_id);
  }
  merge(id, blocks_[id].previous);
  merge(id, blocks_[id].next);
  cache(pool, id);
  stats_.reserved.add(mapped);
  return true;
}

// unmap_block(): returns the pages that lie completely inside a free block; what is left on both
// sides stays cached.
void CachingAllocator::unmap(BlockId id) {
  const Block whole = blocks_[id];
  const Range range = ranges_[whole.range];
  const Bytes offset{static_cast<std::int64_t>(whole.address - range.address)};
  const Bytes begin = round_up(offset, range.page);
  const Bytes end = (offset + whole.size) / range.page * range.page;
  if (begin >= end) return;
  Pool& pool = pool_of(whole);
  uncache(pool, id);
  driver_->unmap(range.address + static_cast<Address>(begin.count), end - begin, whole.stream);
  note(AllocatorAction::segment_unmap, range.address + static_cast<Address>(begin.count),
       end - begin, whole.stream);
  if (begin > offset) {
    Block before = whole;
    before.size = begin - offset;
    before.next = id;
    const BlockId before_id = new_block(before);
    if (whole.previous.valid()) blocks_[whole.previous].next = before_id;
    blocks_[id].previous = before_id;
    cache(pool, before_id);
  }
  if (end < offset + whole.size) {
    Block after = whole;
    after.address = range.address + static_cast<Address>(end.count);
    after.size = offset + whole.size - end;
    after.previous = id;
    const BlockId after_id = new_block(after);
    if (whole.next.valid()) blocks_[whole.next].previous = after_id;
    blocks_[id].next = after_id;
    cache(pool, after_id);
  }
  blocks_[id].address = range.address + static_cast<Address>(begin.count);
  blocks_[id].size = end - begin;
  blocks_[id].mapped = false;
  merge(id, blocks_[id].previous);
  merge(id, blocks_[id].next);
  add_unmapped(pool, id);
  stats_.reserved.remove(end - begin);
  if (!is_split(blocks_[id])) release_range(id);
}

void CachingAllocator::release_range(BlockId id) {
  const Block& block = blocks_[id];
  driver_->release_range(block.address, block.size);
  remove_unmapped(pool_of(block), id);
  drop_block(id);
}

void CachingAllocator::add_unmapped(Pool& pool, BlockId id) {
  std::vector<BlockId>& list = pool.unmapped[blocks_[id].stream];
  const auto at = std::find_if(list.begin(), list.end(), [&](BlockId other) {
    return blocks_[other].address > blocks_[id].address;
  });
  list.insert(at, id);
}

void CachingAllocator::remove_unmapped(Pool& pool, BlockId id) {
  std::vector<BlockId>& list = pool.unmapped[blocks_[id].stream];
  list.erase(std::find(list.begin(), list.end(), id));
}

}  // namespace sim::memory
