#include "sim/program/hooks/pinned_memory.h"

#include <bit>

namespace sim::program {

Bytes PinnedMemory::block_size(Bytes bytes) {
  return Bytes{static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes.count)))};
}

HostBufferId PinnedMemory::allocate(Builder& b, Bytes bytes, ScopeId scope, LabelId label) {
  const Bytes size = block_size(bytes);
  std::vector<HostBufferId>& ready = free_[size];
  if (!ready.empty()) {
    const HostBufferId block = ready.back();
    ready.pop_back();
    return block;
  }
  const HostBufferId block = b.host_allocate(size, HostMemoryKind::pinned, scope, label);
  size_[block] = size;
  return block;
}

void PinnedMemory::free(HostBufferId block) { free_[size_.at(block)].push_back(block); }

}  // namespace sim::program
