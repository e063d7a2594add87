// How far all ranks of a job do the same, so that they are simulated as one until they part.
#pragma once

#include <cstdint>

#include "sim/program/program.h"

namespace sim::engine {

// The number of ops at the start of every program that are equal in all of them, with the same ids
// for equal things, and that name only groups of all ranks. It ends outside of loops.
std::uint32_t common_start(const program::Workload& workload);

}  // namespace sim::engine
