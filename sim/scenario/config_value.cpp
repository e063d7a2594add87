#include "sim/scenario/config_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "sim/base/text.h"
#include "sim/base/units_text.h"

namespace sim {
namespace {

void refuse(const ConfigNode& node, FieldName field, std::string_view wanted, std::string hint,
            Diagnostics& diagnostics) {
  diagnostics.error(node.at,
                    fmt::format("{} must be {}, not {}", field.name, wanted, describe(node)),
                    std::move(hint));
}

// All of `text` as a number; nullopt where from_chars would stop early.
template <class T>
std::optional<T> from_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_leading_zero(std::string_view digits) {
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return digits.size() > 1 && digits.front() == '0';
}

bool is_number_like(const ConfigNode& node) {
  return node.is_scalar() && from_whole<double>(node.text).has_value();
}

// What the writer of a value that is no plain whole number may have meant.
std::string integer_hint(const ConfigNode& node) {
  const std::optional<double> number =
      node.is_scalar() ? from_whole<double>(node.text) : std::nullopt;
  if (!number) return {};
  if (node.quoted) return "a quoted number is a string; remove the quotes";
  const bool whole = std::floor(*number) == *number && std::abs(*number) < 1e15;
  if (!whole) return {};
  const std::string plain = fmt::format("{:.0f}", *number);
  if (has_leading_zero(node.text)) {
    return fmt::format("a leading zero means octal to some readers; write {}", plain);
  }
  return fmt::format("write {}", plain);
}

// A quantity with its unit; `parse` is one of units_text.h.
template <class T>
std::optional<T> read_quantity(const ConfigNode& node, FieldName field, std::string_view what,
                               std::string_view examples,
                               std::optional<T> (*parse)(std::string_view),
                               Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    if (const auto value = parse(node.text)) return value;
  }
  if (is_number_like(node)) {
    diagnostics.error(node.at, fmt::format("{} needs a unit: {}", field.name, describe(node)),
                      fmt::format("write {} with its unit, like {}", what, examples));
  } else {
    refuse(node, field, what, fmt::format("write it like {}", examples), diagnostics);
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return "nothing";
    case ConfigNode::Kind::scalar:
      return in_quotes(node.text);
    case ConfigNode::Kind::sequence:
      return "a list";
    case ConfigNode::Kind::map:
      return "a map";
  }
  return {};
}

template <>
std::optional<std::string> read_value(const ConfigNode& node, FieldName field,
                                      Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.text.empty()) return node.text;
  refuse(node, field, "a word", {}, diagnostics);
  return std::nullopt;
}

template <>
std::optional<bool> read_value(const ConfigNode& node, FieldName field, Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.quoted) {
    if (node.text == "true" || node.text == "True") return true;
    if (node.text == "false" || node.text == "False") return false;
  }
  refuse(node, field, "true or false", {}, diagnostics);
  return std::nullopt;
}

template <>
std::optional<std::int64_t> read_value(const ConfigNode& node, FieldName field,
                                       Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.quoted && !has_leading_zero(node.text)) {
    if (const auto value = from_whole<std::int64_t>(node.text)) return value;
  }
  refuse(node, field, "a whole number", integer_hint(node), diagnostics);
  return std::nullopt;
}

template <>
std::optional<double> read_value(const ConfigNode& node, FieldName field,
                                 Diagnostics& diagnostics) {
  if (node.is_scalar() && !node.quoted) {
    const auto value = from_whole<double>(node.text);
    if (value && std::isfinite(*value)) return value;
  }
  const bool quoted_number = is_number_like(node) && node.quoted;
  refuse(node, field, "a number",
         quoted_number ? "a quoted number is a string; remove the quotes" : "", diagnostics);
  return std::nullopt;
}

template <>
std::optional<Bytes> read_value(const ConfigNode& node, FieldName field, Diagnostics& diagnostics) {
  return read_quantity(node, field, "a size", "80 GiB (2^30 bytes each) or 80 GB (10^9 bytes each)",
                       parse_bytes, diagnostics);
}

template <>
std::optional<ByteRate> read_value(const ConfigNode& node, FieldName field,
                                   Diagnostics& diagnostics) {
  return read_quantity(node, field, "a bandwidth", "300 GB/s (bytes) or 400 Gb/s (bits)",
                       parse_byte_rate, diagnostics);
}

template <>
std::optional<FlopRate> read_value(const ConfigNode& node, FieldName field,
                                   Diagnostics& diagnostics) {
  return read_quantity(node, field, "a compute rate", "312 TFLOP/s", parse_flop_rate, diagnostics);
}

template <>
std::optional<Duration> read_value(const ConfigNode& node, FieldName field,
                                   Diagnostics& diagnostics) {
  return read_quantity(node, field, "a time", "30 min, 1.5 s or 20 us", parse_duration,
                       diagnostics);
}

bool check_limits(std::int64_t value, Limits<std::int64_t> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics) {
  if (value >= limits.least && value <= limits.most) return true;
  const bool low = value < limits.least;
  diagnostics.error(at,
                    fmt::format("{} must be at {} {}, not {}", field.name, low ? "least" : "most",
                                low ? limits.least : limits.most, value));
  return false;
}

bool check_limits(double value, Limits<double> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics) {
  if (value >= limits.least && value <= limits.most) return true;
  const bool low = value < limits.least;
  diagnostics.error(
      at, fmt::format("{} must be at {} {:g}, not {:g}", field.name, low ? "least" : "most",
                      low ? limits.least : limits.most, value));
  return false;
}

bool check_limits(Bytes value, Limits<Bytes> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics) {
  if (value >= limits.least && value <= limits.most) return true;
  const bool low = value < limits.least;
  diagnostics.error(
      at, fmt::format("{} must be at {} {}, not {}", field.name, low ? "least" : "most",
                      to_text_exact(low ? limits.least : limits.most), to_text_exact(value)));
  return false;
}

std::string write_value(const std::string& value) { return value; }
std::string write_value(bool value) { return value ? "true" : "false"; }
std::string write_value(std::int64_t value) { return fmt::format("{}", value); }
std::string write_value(double value) { return fmt::format("{}", value); }
std::string write_value(Bytes value) { return to_text_exact(value); }

}  // namespace sim
