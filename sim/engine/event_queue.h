// The ranks that can go on, by whose turn it is: a total order, so that two runs take the same
// path.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/units.h"

namespace sim::engine {

// The earlier host clock goes first; at the same instant the one that is less far in its program,
// so that ranks in lockstep take turns op by op, whether they are simulated as one or each by
// itself.
struct Turn {
  Instant at{};
  std::uint64_t op = 0;    // ops issued so far, loops counted
  std::uint32_t rank = 0;  // index of the simulated rank
  friend auto operator<=>(const Turn&, const Turn&) = default;
};
inline constexpr Turn kLastTurn{Instant::max(), std::numeric_limits<std::uint64_t>::max(), 0};

class EventQueue {
 public:
  void push(const Turn& turn) {
    heap_.push_back(turn);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  Turn pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Turn turn = heap_.back();
    heap_.pop_back();
    return turn;
  }
  // The next turn, or kLastTurn if there is none.
  const Turn& next() const { return heap_.empty() ? kLastTurn : heap_.front(); }
  bool empty() const { return heap_.empty(); }

 private:
  static bool later(const Turn& a, const Turn& b) { return b < a; }
  std::vector<Turn> heap_;
};

}  // namespace sim::engine
