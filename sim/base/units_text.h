// Quantities as people write them, parsed once at the border: "80 GiB" <-> Bytes, "400 Gb/s" <->
// ByteRate, "312 TFLOP/s" <-> FlopRate, "30 min" <-> Duration. A bare number is refused.
//
// Bytes: B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024). Rates: the same with
// /s, and b/s kb/s Mb/s Gb/s Tb/s in bits. FlopRate: GFLOP/s TFLOP/s PFLOP/s. Duration: ps ns us ms
// s min h. One blank between number and unit is optional; numbers are decimal (39.39), not
// negative.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace sim {

std::optional<Bytes> parse_bytes(std::string_view text);
std::optional<ByteRate> parse_byte_rate(std::string_view text);
std::optional<FlopRate> parse_flop_rate(std::string_view text);
std::optional<Duration> parse_duration(std::string_view text);

// For people: the largest binary unit with two decimals ("37.52 GiB", "64.00 MiB", "512 B"); GiB at
// most, as PyTorch prints them.
std::string to_text(Bytes b);
std::string to_text(ByteRate r);  // "300.0 GB/s"
std::string to_text(Duration d);  // "1.234 s", "56.7 ms"
std::string to_text_exact(
    Bytes b);  // shortest text that parses back: "39.39 GiB" or "42299424768 B"

}  // namespace sim
