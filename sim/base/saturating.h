// Sums and products that stop at the largest number instead of overflowing, for what a scenario can
// make as long or as often as it likes. All operands are >= 0.
#pragma once

#include <cstdint>
#include <limits>

#include "sim/base/units.h"

namespace sim {

constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}
constexpr std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

// The clock stops here, after 106 days; Instant::max() itself is left for "never".
inline constexpr Instant kEndOfTime = Instant::max() - Duration{1};

constexpr Instant saturating_add(Instant t, Duration d) {
  return d < kEndOfTime - t ? t + d : kEndOfTime;
}
constexpr Duration saturating_multiply(Duration d, std::int64_t n) {
  return Duration{saturating_multiply(d.count(), n)};
}

}  // namespace sim
