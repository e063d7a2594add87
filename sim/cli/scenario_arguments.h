// The arguments of every command that takes a scenario: SCENARIO [--set KEY=VALUE ...] [-o FILE].
#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/scenario/scenario.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace sim::cli {

struct ScenarioArguments {
  std::string path;
  std::string output;                 // -o; empty = stdout
  std::vector<std::string> settings;  // as written: "job.micro_batch_size=4"
};

void declare(CLI::App& app, ScenarioArguments& arguments);

// Splits the settings at their first '='. A setting without one is filed as an error, and so is an
// output that would overwrite the scenario.
std::vector<Override> overrides(const ScenarioArguments& arguments, Diagnostics& diagnostics);

}  // namespace sim::cli
