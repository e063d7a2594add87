// An optimizer: the states it keeps a parameter, made lazily by its first step, and its
// temporaries.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/catalog.h"
#include "sim/program/session.h"

namespace sim::program {

struct Optimizer {
  std::string_view name;
  std::string_view description;
  // False and diagnostics for options it does not know. Called once before any step.
  bool (*check)(const ConfigNode& options, Diagnostics& diagnostics);
  void (*step)(Session& session, std::vector<ParameterState>& state);
};
const Catalog<Optimizer>& optimizer_catalog();

}  // namespace sim::program
