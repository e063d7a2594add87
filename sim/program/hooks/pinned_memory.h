// PyTorch's caching host allocator (aten/src/ATen/cuda/CachingHostAllocator.cpp): page-locked
// blocks of powers of two, never split, kept for reuse when they are freed.
#pragma once

#include <map>
#include <vector>

#include "sim/program/builder.h"

namespace sim::program {

class PinnedMemory {
 public:
  HostBufferId allocate(Builder& b, Bytes bytes, ScopeId scope, LabelId label);
  void free(HostBufferId block);  // stays pinned, for the next of its size

  static Bytes block_size(Bytes bytes);

 private:
  std::map<Bytes, std::vector<HostBufferId>> free_;
  std::map<HostBufferId, Bytes> size_;
};

}  // namespace sim::program
