// How node files and scenarios spell GpuInterconnect.
#pragma once

#include "sim/scenario/config_reader.h"
#include "sim/scenario/hardware_spec.h"

namespace sim {

inline constexpr Choice<GpuInterconnect> kInterconnects[] = {
    {"nvswitch", GpuInterconnect::nvswitch},
    {"nvlink_mesh", GpuInterconnect::nvlink_mesh},
    {"nvlink_pairs", GpuInterconnect::nvlink_pairs},
    {"pcie", GpuInterconnect::pcie},
};

}  // namespace sim
