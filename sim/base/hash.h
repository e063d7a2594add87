// A 64-bit hash of numbers, the same on every machine: for telling states apart, not for tables
// that an adversary fills.
#pragma once

#include <cstdint>

namespace sim {

class Hash {
 public:
  template <class T>
  Hash& add(T value) {
    // The multiplier is 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
    value_ = (value_ ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ull;
    value_ ^= value_ >> 32;
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 1;
};

}  // namespace sim
