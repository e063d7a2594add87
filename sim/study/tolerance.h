// How close a figure must come to the one that a scenario expects:
//
//   37.52 GiB                              the printed digits agree (half a unit of the last one)
//   {value: 37.52 GiB, within: 0.15 GiB}   this far off at most
//   {under: 64 MiB}  {over: 1 GiB}         at most, at least
//   [31, 32]                               from .. to
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostics.h"
#include "sim/scenario/config_node.h"

namespace sim::study {

enum class Quantity { bytes, duration, number };

// Both ends belong to it. Bytes and seconds as plain numbers.
struct Band {
  double low = 0, high = 0;
  std::optional<double> centre;
  std::string text;  // as expected, for people
};

std::optional<Band> read_band(const ConfigNode& node, Quantity quantity, std::string_view key,
                              Diagnostics& diagnostics);

bool contains(const Band& band, double value);

// "37.60 GiB", "1800.000 s", "31"
std::string quantity_text(double value, Quantity quantity);
// How far from what was expected: "+0.08 GiB", "32.00 MiB too many"; empty where equal.
std::string deviation_text(double value, const Band& band, Quantity quantity);

}  // namespace sim::study
