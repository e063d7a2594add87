// Plan -> Programs. `resolve` turns the scenario's releases and trainer into facts; `lower` writes
// down what each rank's Python thread issues, in host order.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/base/units.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"
#include "sim/scenario/scenario.h"

namespace sim::program {

// Releases of every library that matters, defaults dated from those given (each default is filed).
struct Software {
  std::map<std::string, Release> releases;
  const Release& of(const std::string& library) const;
};

Software resolve_software(const Scenario& scenario, Assumptions& assumptions,
                          Diagnostics& diagnostics);

// Files an error for each name of the job that no catalog knows and for options that its optimizer
// refuses: what can be said without a plan. A name that is empty could not be read.
void check_names(const Scenario& scenario, Diagnostics& diagnostics);

// The implementations that the trainer runs under these releases.
std::optional<plan::Implementations> choose_implementations(const Scenario& scenario,
                                                            const Software& software,
                                                            Assumptions& assumptions,
                                                            Diagnostics& diagnostics);

struct Lowered {
  Workload workload;
  Flops model_flops_per_step;  // global batch, forward and backward, no recompute
  std::int64_t tokens_per_step = 0;
};

std::optional<Lowered> lower(const Scenario& scenario, const plan::Plan& plan,
                             const Software& software, Assumptions& assumptions,
                             Diagnostics& diagnostics);

}  // namespace sim::program
