// The steady step: how long, how much of it is what, and how well it uses the card. Internal to the
// report floor.
#pragma once

#include <optional>

#include "sim/report/report.h"

namespace sim::report {

// Reads the phase `step` of the first rank class. Its parts come from its sub-phases
// (step.forward, ...), exposed communication from slices; where the run has none they stay empty.
// Nothing where the run ended before a steady step.
std::optional<StepSummary> summarise_step(const Subject& subject, const Timeline& timeline,
                                          const std::vector<PhaseSummary>& phases);

}  // namespace sim::report
