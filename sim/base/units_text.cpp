#include "sim/base/units_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>

namespace sim {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};

constexpr Unit kByteUnits[] = {
    {"B", 1},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", std::int64_t{1} << 10},
    {"MiB", std::int64_t{1} << 20},
    {"GiB", std::int64_t{1} << 30},
    {"TiB", std::int64_t{1} << 40},
};
constexpr Unit kBitRateUnits[] = {
    {"b/s", 1},
    {"kb/s", 1'000},
    {"Mb/s", 1'000'000},
    {"Gb/s", 1'000'000'000},
    {"Tb/s", 1'000'000'000'000},
};
constexpr Unit kFlopRateUnits[] = {
    {"GFLOP/s", 1'000'000'000},
    {"TFLOP/s", 1'000'000'000'000},
    {"PFLOP/s", 1'000'000'000'000'000},
};
constexpr Unit kDurationUnits[] = {
    {"ps", 1},
    {"ns", 1'000},
    {"us", 1'000'000},
    {"ms", 1'000'000'000},
    {"s", 1'000'000'000'000},
    {"min", 60'000'000'000'000},
    {"h", 3'600'000'000'000'000},
};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Written {
  std::string_view number;  // digits [. digits]
  std::string_view unit;
};

std::optional<Written> split(std::string_view text) {
  std::size_t end = 0;
  const auto skip_digits = [&] {
    const std::size_t begin = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end > begin;
  };
  if (!skip_digits()) return std::nullopt;
  if (end < text.size() && text[end] == '.') {
    ++end;
    if (!skip_digits()) return std::nullopt;
  }
  std::string_view unit = text.substr(end);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return Written{text.substr(0, end), unit};
}

std::optional<double> to_double(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// number * size, rounded to the nearest integer. The whole part is exact, so 42299424768 B and
// 9007199254740993 B both come back as written.
std::optional<std::int64_t> scale(std::string_view number, std::int64_t size) {
  const std::size_t dot = std::min(number.find('.'), number.size());
  std::int64_t whole = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + dot, whole);
  const std::optional<double> part = to_double(dot < number.size() ? number.substr(dot) : "0");
  if (parsed.ec != std::errc{} || !part) return std::nullopt;
  std::int64_t total = 0;
  if (__builtin_mul_overflow(whole, size, &total) ||
      __builtin_add_overflow(total, std::llround(*part * static_cast<double>(size)), &total)) {
    return std::nullopt;
  }
  return total;
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::span<const Unit> units) {
  const std::optional<Written> written = split(text);
  const Unit* unit = written ? find_unit(units, written->unit) : nullptr;
  return unit ? scale(written->number, unit->size) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text, std::span<const Unit> units) {
  const std::optional<Written> written = split(text);
  const Unit* unit = written ? find_unit(units, written->unit) : nullptr;
  if (!unit) return std::nullopt;
  const std::optional<double> number = to_double(written->number);
  if (!number) return std::nullopt;
  return *number * static_cast<double>(unit->size);
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto count = parse_integer(text, kByteUnits);
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::optional<ByteRate> parse_byte_rate(std::string_view text) {
  if (const auto bits = parse_real(text, kBitRateUnits)) return ByteRate{*bits / 8};
  if (!text.ends_with("/s")) return std::nullopt;
  const auto bytes = parse_real(text.substr(0, text.size() - 2), kByteUnits);
  return bytes ? std::optional(ByteRate{*bytes}) : std::nullopt;
}

std::optional<FlopRate> parse_flop_rate(std::string_view text) {
  const auto rate = parse_real(text, kFlopRateUnits);
  return rate ? std::optional(FlopRate{*rate}) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto count = parse_integer(text, kDurationUnits);
  return count ? std::optional<Duration>(*count) : std::nullopt;
}

std::string to_text(Bytes b) {
  const double count = static_cast<double>(b.count);
  const double size = std::abs(count);
  if (size >= 1024.0 * 1024 * 1024) return fmt::format("{:.2f} GiB", count / (1 << 30));
  if (size >= 1024.0 * 1024) return fmt::format("{:.2f} MiB", count / (1 << 20));
  if (size >= 1024.0) return fmt::format("{:.2f} KiB", count / (1 << 10));
  return fmt::format("{} B", b.count);
}

std::string to_text(ByteRate r) {
  if (r.per_second >= 1e9) return fmt::format("{:.1f} GB/s", r.per_second / 1e9);
  if (r.per_second >= 1e6) return fmt::format("{:.1f} MB/s", r.per_second / 1e6);
  if (r.per_second >= 1e3) return fmt::format("{:.1f} kB/s", r.per_second / 1e3);
  return fmt::format("{:.1f} B/s", r.per_second);
}

std::string to_text(Duration d) {
  constexpr std::int64_t kMinute = 60'000'000'000'000;  // in picoseconds
  const double seconds = to_seconds(d);
  const double size = std::abs(seconds);
  if (d.count() == 0) return "0.0 s";
  if (d.count() % kMinute == 0) return fmt::format("{} min", d.count() / kMinute);
  if (size >= 1) return fmt::format("{:.3f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (size >= 1e-6) return fmt::format("{:.1f} us", seconds * 1e6);
  if (size >= 1e-9) return fmt::format("{:.1f} ns", seconds * 1e9);
  return fmt::format("{} ps", d.count());
}

std::string to_text_exact(Bytes b) {
  constexpr double kReadable = 10'000;  // 41308032 KiB says less than the bytes it stands for
  std::string best = fmt::format("{} B", b.count);
  for (const Unit& unit : kByteUnits) {
    const double number = static_cast<double>(b.count) / static_cast<double>(unit.size);
    if (number >= kReadable) continue;
    for (int decimals = 0; decimals <= 3; ++decimals) {
      const std::string text = fmt::format("{:.{}f} {}", number, decimals, unit.name);
      if (text.size() <= best.size() && parse_bytes(text) == b) best = text;
    }
  }
  return best;
}

}  // namespace sim
