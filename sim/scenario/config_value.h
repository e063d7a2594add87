// One scalar of a configuration file as a typed value, strictly: nothing is rounded, guessed or
// read in two ways. `010`, `1e9` and `3.0` are no whole numbers, `yes` is no boolean, a size needs
// its unit, and a quoted number is a string. What cannot be read is an error at its place with the
// form to write.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostics.h"
#include "sim/base/units.h"
#include "sim/scenario/config_node.h"

namespace sim {

// The values that make sense, both ends included.
template <class T>
struct Limits {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};
inline constexpr Limits<std::int64_t> kPositive{1, std::int64_t{1} << 40};
inline constexpr Limits<std::int64_t> kSmallPositive{1, 1 << 20};  // ranks, devices, layers

inline constexpr Limits<Bytes> kHostMemory{1_GiB, 1024_GiB * 1024};

// `name` says in messages what the value is: "job.micro_batch_size".
struct FieldName {
  std::string_view name;
};

template <class T>
std::optional<T> read_value(const ConfigNode& node, FieldName field, Diagnostics& diagnostics);

template <>
std::optional<std::string> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<bool> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<std::int64_t> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<double> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<Bytes> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<ByteRate> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<FlopRate> read_value(const ConfigNode&, FieldName, Diagnostics&);
template <>
std::optional<Duration> read_value(const ConfigNode&, FieldName, Diagnostics&);

// False and an error where the value lies outside.
bool check_limits(std::int64_t value, Limits<std::int64_t> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics);
bool check_limits(double value, Limits<double> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics);
bool check_limits(Bytes value, Limits<Bytes> limits, const Span& at, FieldName field,
                  Diagnostics& diagnostics);

// As it would be written in a file.
std::string write_value(const std::string& value);
std::string write_value(bool value);
std::string write_value(std::int64_t value);
std::string write_value(double value);
std::string write_value(Bytes value);

// "a map", "a list", "'text'", "nothing": for messages.
std::string describe(const ConfigNode& node);

}  // namespace sim
