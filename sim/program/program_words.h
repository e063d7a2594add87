// Words of the text form that no other floor needs.
#pragma once

#include <string_view>

#include "sim/program/op.h"

namespace sim::program {

inline constexpr int kCopyDirections = 3;
constexpr std::string_view to_text(CopyDirection direction) {
  constexpr std::string_view names[] = {"host_to_device", "device_to_host", "device_to_device"};
  return names[static_cast<int>(direction)];
}

}  // namespace sim::program
