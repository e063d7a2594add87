// The free blocks of one pool and stream, ordered by size, then address: the order in which
// PyTorch's allocator looks for a best fit.
//
// A sorted sequence cut into short runs, so that inserting moves at most one run and looking up
// touches two small arrays; no node is ever allocated on the hot path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/memory/device_memory.h"

namespace sim::memory {

struct BlockTag;
using BlockId = Id<BlockTag>;  // valid from allocate() until the block's memory is free again

class FreeBlocks {
 public:
  struct Entry {
    Bytes size;
    Address address = 0;
    BlockId block;
  };
  struct Position {
    std::size_t run = 0;
    std::size_t slot = 0;
    friend bool operator==(Position, Position) = default;
  };

  void insert(const Entry& entry);
  // The entry must be there.
  void erase(Bytes size, Address address);
  void erase(Position at);

  // First entry that is not smaller than `size`; end() if there is none.
  Position lower_bound(Bytes size) const { return lower_bound(size, 0); }
  Position begin() const { return {}; }
  Position end() const { return {runs_.size(), 0}; }
  Position next(Position at) const;
  Position previous(Position at) const;  // `at` is not begin()
  const Entry& operator[](Position at) const { return runs_[at.run][at.slot]; }
  bool empty() const { return runs_.empty(); }

 private:
  Position lower_bound(Bytes size, Address address) const;

  std::vector<std::vector<Entry>> runs_;  // none is empty
};

}  // namespace sim::memory
