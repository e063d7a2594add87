// A Plan as stable text: blocks, parameters, operators with their tensors. Golden files hold it.
#pragma once

#include <string>

#include "sim/plan/plan.h"

namespace sim::plan {

// Repeated blocks that are alike are printed once with their count unless `full`.
std::string to_text(const Plan& plan, bool full = false);

}  // namespace sim::plan
