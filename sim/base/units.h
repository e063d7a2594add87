// Quantities as types: Bytes, Flops, ByteRate, FlopRate, Duration and Instant.
//
// Bytes are signed 64-bit integers; rates and Flops are doubles; time is an integer count of
// picoseconds (106 days fit), so events have a total order and no epsilon. Only the arithmetic that
// means something compiles:
//   Bytes / ByteRate -> Duration (rounded up)   Flops / FlopRate -> Duration (rounded up)
//   Bytes / Duration -> ByteRate                quantity * number, quantity / quantity -> number
// GB is 10^9 and GiB is 2^30, always; network rates in bits have their own literal (400_Gbps).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace sim {

struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  constexpr Bytes& operator+=(Bytes b) {
    count += b.count;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) {
    count -= b.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator-(Bytes a) { return {-a.count}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.count * n}; }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return {a.count * n}; }
  friend constexpr Bytes operator/(Bytes a, std::int64_t n) { return {a.count / n}; }
  friend constexpr std::int64_t operator/(Bytes a, Bytes b) { return a.count / b.count; }
  friend constexpr Bytes operator%(Bytes a, Bytes b) { return {a.count % b.count}; }
};

// Smallest multiple of `quantum` that is >= `a`; `quantum` > 0.
constexpr Bytes round_up(Bytes a, Bytes quantum) {
  return {(a.count + quantum.count - 1) / quantum.count * quantum.count};
}

struct Flops {
  double count = 0;
  friend constexpr auto operator<=>(Flops, Flops) = default;
  constexpr Flops& operator+=(Flops b) {
    count += b.count;
    return *this;
  }
  friend constexpr Flops operator+(Flops a, Flops b) { return {a.count + b.count}; }
  friend constexpr Flops operator*(Flops a, double n) { return {a.count * n}; }
  friend constexpr Flops operator*(double n, Flops a) { return {a.count * n}; }
};

struct ByteRate {  // bytes per second
  double per_second = 0;
  friend constexpr auto operator<=>(ByteRate, ByteRate) = default;
  friend constexpr ByteRate operator+(ByteRate a, ByteRate b) {
    return {a.per_second + b.per_second};
  }
  friend constexpr ByteRate operator-(ByteRate a, ByteRate b) {
    return {a.per_second - b.per_second};
  }
  friend constexpr ByteRate operator*(ByteRate a, double n) { return {a.per_second * n}; }
  friend constexpr ByteRate operator/(ByteRate a, double n) { return {a.per_second / n}; }
};

struct FlopRate {  // floating-point operations per second
  double per_second = 0;
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;
  friend constexpr FlopRate operator*(FlopRate a, double n) { return {a.per_second * n}; }
};

using Duration = std::chrono::duration<std::int64_t, std::pico>;

// Simulated time since the start of the job.
struct SimulatedClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  static constexpr bool is_steady = true;
};
using Instant = std::chrono::time_point<SimulatedClock, Duration>;

namespace units_detail {
// Rounds up and saturates: an absurdly slow rate gives the longest Duration, never an overflow.
constexpr Duration picoseconds_up(double seconds) {
  const double ps = seconds * 1e12;
  if (!(ps < 9.2e18)) return Duration::max();
  const auto whole = static_cast<std::int64_t>(ps);
  return Duration{whole + (static_cast<double>(whole) < ps ? 1 : 0)};
}
}  // namespace units_detail

constexpr Duration operator/(Bytes b, ByteRate r) {
  return units_detail::picoseconds_up(static_cast<double>(b.count) / r.per_second);
}
constexpr Duration operator/(Flops f, FlopRate r) {
  return units_detail::picoseconds_up(f.count / r.per_second);
}
constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double to_seconds(Instant t) { return to_seconds(t.time_since_epoch()); }
constexpr Duration from_seconds(double seconds) { return units_detail::picoseconds_up(seconds); }
constexpr ByteRate operator/(Bytes b, Duration d) {
  return {static_cast<double>(b.count) / to_seconds(d)};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 30};
}
constexpr Bytes operator""_GB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) * 1'000'000'000};
}
constexpr ByteRate operator""_GBps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr ByteRate operator""_Gbps(unsigned long long n) {
  return {static_cast<double>(n) * 1e9 / 8};
}
constexpr FlopRate operator""_TFLOPS(unsigned long long n) {
  return {static_cast<double>(n) * 1e12};
}
constexpr Duration operator""_ns(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n) * 1'000};
}
constexpr Duration operator""_us(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n) * 1'000'000};
}
constexpr Duration operator""_ms(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n) * 1'000'000'000};
}
constexpr Duration operator""_s(unsigned long long n) {
  return Duration{static_cast<std::int64_t>(n) * 1'000'000'000'000};
}
}  // namespace literals

}  // namespace sim
