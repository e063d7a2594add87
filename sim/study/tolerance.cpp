#include "sim/study/tolerance.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/base/units_text.h"

namespace sim::study {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> parse(std::string_view text, Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes:
      if (const auto bytes = parse_bytes(text)) return static_cast<double>(bytes->count);
      return std::nullopt;
    case Quantity::duration:
      if (const auto duration = parse_duration(text)) return to_seconds(*duration);
      return std::nullopt;
    case Quantity::number:
      return parse_number(text);
  }
  return std::nullopt;
}

// Half a unit of the last digit written: "37.52 GiB" -> 0.005 GiB. Whole bytes and counts are
// exact.
double half_last_digit(std::string_view text, Quantity quantity) {
  const std::size_t digits_end = std::min(text.find_first_not_of("0123456789.-"), text.size());
  const std::string_view number = text.substr(0, digits_end);
  const std::string unit(text.substr(digits_end));
  const std::size_t point = number.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : number.size() - point - 1;
  const double one = parse("1" + unit, quantity).value_or(1);
  const bool exact = decimals == 0 && (one == 1 && quantity != Quantity::duration);
  return exact ? 0 : 0.5 * one * std::pow(10, -static_cast<double>(decimals));
}

std::optional<double> read_figure(const ConfigNode& node, Quantity quantity, std::string_view key,
                                  Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    if (const auto value = parse(node.text, quantity)) return value;
  }
  static constexpr std::string_view kForms[] = {"a size such as 37.52 GiB", "a time such as 30 min",
                                                "a number"};
  diagnostics.error(node.at,
                    fmt::format("expect.{} has to be {}", key, kForms[static_cast<int>(quantity)]));
  return std::nullopt;
}

std::optional<Band> read_map(const ConfigNode& node, Quantity quantity, std::string_view key,
                             Diagnostics& diagnostics) {
  Band band{-kInfinity, kInfinity, std::nullopt, {}};
  std::optional<double> within;
  const std::size_t errors = diagnostics.error_count();
  for (const ConfigNode::Entry& entry : node.entries) {
    if (entry.key != "value" && entry.key != "within" && entry.key != "under" &&
        entry.key != "over") {
      report_unknown_name("key of a tolerance", {entry.key, entry.key_at},
                          {"value", "within", "under", "over"}, diagnostics);
      continue;
    }
    const auto figure = read_figure(entry.value, quantity, key, diagnostics);
    if (!figure) continue;
    if (entry.key == "value") band.centre = figure;
    if (entry.key == "within") within = figure;
    if (entry.key == "under") band.high = *figure;
    if (entry.key == "over") band.low = *figure;
    if (!band.text.empty()) band.text += ' ';
    if (entry.key != "value") band.text += entry.key + ' ';
    band.text += entry.value.text;
  }
  if (diagnostics.error_count() > errors) return std::nullopt;
  if (within && !band.centre) {
    diagnostics.error(node.at, fmt::format("expect.{}: within needs a value", key),
                      "{value: 37.52 GiB, within: 0.15 GiB}");
    return std::nullopt;
  }
  if (band.centre) {
    const double slack = within ? *within : half_last_digit(node.find("value")->text, quantity);
    band.low = std::max(band.low, *band.centre - slack);
    band.high = std::min(band.high, *band.centre + slack);
  }
  return band;
}

}  // namespace

std::optional<Band> read_band(const ConfigNode& node, Quantity quantity, std::string_view key,
                              Diagnostics& diagnostics) {
  if (node.is_map()) return read_map(node, quantity, key, diagnostics);
  if (node.is_sequence()) {
    if (node.items.size() != 2) {
      diagnostics.error(node.at, fmt::format("expect.{}: a range has two ends", key), "[31, 32]");
      return std::nullopt;
    }
    const auto low = read_figure(node.items[0], quantity, key, diagnostics);
    const auto high = read_figure(node.items[1], quantity, key, diagnostics);
    if (!low || !high) return std::nullopt;
    return Band{*low, *high, std::nullopt,
                fmt::format("{} to {}", node.items[0].text, node.items[1].text)};
  }
  const auto value = read_figure(node, quantity, key, diagnostics);
  if (!value) return std::nullopt;
  const double slack = half_last_digit(node.text, quantity);
  return Band{*value - slack, *value + slack, value, node.text};
}

bool contains(const Band& band, double value) { return band.low <= value && value <= band.high; }

std::string quantity_text(double value, Quantity quantity) {
  switch (quantity) {
    case Quantity::bytes:
      return to_text(Bytes{static_cast<std::int64_t>(value)});
    case Quantity::duration:
      return to_text(from_seconds(value));
    case Quantity::number:
      return fmt::format("{:.6g}", value);
  }
  return {};
}

std::string deviation_text(double value, const Band& band, Quantity quantity) {
  const auto amount = [&](double by) { return quantity_text(std::abs(by), quantity); };
  if (band.centre) {
    const double off = value - *band.centre;
    if (off == 0) return "";
    return fmt::format("{}{}", off > 0 ? '+' : '-', amount(off));
  }
  if (value < band.low) return amount(band.low - value) + " too few";
  if (value > band.high) return amount(value - band.high) + " too many";
  return "";
}

}  // namespace sim::study
