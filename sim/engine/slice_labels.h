// The names in a timeline's slices, put into its tables once before the run.
#pragma once

#include <vector>

#include "sim/engine/rank.h"
#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// By program. Scopes with the same name in several programs become one.
std::vector<SliceLabels> make_slice_labels(const program::Workload& workload, Timeline& timeline);

}  // namespace sim::engine
