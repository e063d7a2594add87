// Freed blocks that other streams may still use. PyTorch records one event per such stream when the
// tensor is freed and looks, at the start of each malloc, which events have passed (process_events
// in c10/cuda/CUDACachingAllocator.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/terms.h"
#include "sim/engine/streams.h"
#include "sim/memory/caching_allocator.h"

namespace sim::engine {

class PendingFrees {
 public:
  // `used_on`: a bit per StreamRole that the block was recorded on.
  void add(memory::BlockId block, std::uint32_t used_on, Streams& streams);

  // Hands the blocks whose events have passed at `now` to allocator.complete(). Events that are not
  // timed yet have not passed: the caller asks only when no other rank is behind `now`.
  void retire(Instant now, const Streams& streams, memory::CachingAllocator& allocator) {
    if (!items_.empty() && (open_ || earliest_ <= now)) scan(now, streams, allocator);
  }

  // Some event's time depends on what other ranks have yet to do.
  bool undecided(const Streams& streams) const;

  // The allocator completed all of them at once.
  void clear() { items_.clear(); }

  // Takes note of events that have become timed.
  void close(const Streams& streams);
  // All events must be known: which blocks wait how long after `now`, and moving that by `by`.
  void hash_rest(Instant now, const memory::CachingAllocator& allocator, Hash& hash) const;
  void shift(Instant now, Duration by);

 private:
  struct Item {
    memory::BlockId block;
    Instant known{};  // the last of the events with a time
    int tickets = 0;
    std::array<TicketId, kStreamRoles> open;
  };
  static void close(Item& item, const Streams& streams);
  void scan(Instant now, const Streams& streams, memory::CachingAllocator& allocator);

  std::vector<Item> items_;  // in the order of the frees
  Instant earliest_{};       // no item passes before it, unless open_; may be too early
  bool open_ = false;        // some item holds a ticket
};

}  // namespace sim::engine
