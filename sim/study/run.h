// One scenario end to end: read -> plan -> lower -> simulate -> analyse.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/engine/simulate.h"
#include "sim/plan/plan.h"
#include "sim/program/lower.h"
#include "sim/report/report.h"
#include "sim/scenario/scenario.h"

namespace sim::study {

// Everything between input and answer, for commands that print a stage.
struct Stages {
  Scenario scenario;
  program::Software software;
  plan::Plan plan;
  program::Lowered lowered;
  Assumptions assumptions;
};
// All that is wrong with the scenario is filed in one run, whichever floor finds it, as far as that
// needs no plan.
std::optional<Stages> prepare(const std::string& path, const DataRoots& roots,
                              const std::vector<Override>& overrides, Diagnostics& diagnostics);
// The same from a scenario already in memory.
std::optional<Stages> prepare(Scenario scenario, Diagnostics& diagnostics);

struct Run {
  Stages stages;
  Timeline timeline;
  report::Report report;
};
std::optional<Run> run(const std::string& path, const DataRoots& roots,
                       const std::vector<Override>& overrides,
                       const engine::SimulateOptions& options, Diagnostics& diagnostics);
std::optional<Run> run(Scenario scenario, const engine::SimulateOptions& options,
                       Diagnostics& diagnostics);

// Complains of a torch release or allocator options that are not known.
void check_allocator(const Scenario& scenario, const program::Software& software,
                     Diagnostics& diagnostics);

// The devices of a scenario: allocator of its torch release, observed totals, placement of ranks.
std::optional<engine::Machine> make_machine(const Scenario& scenario,
                                            const program::Software& software,
                                            Diagnostics& diagnostics);

}  // namespace sim::study
