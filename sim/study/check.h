// A report against what its scenario expects (`expect:`), one line for each expectation.
//
//   expect:
//     verdict: crashed            phase: save             message: invalid argument
//     tensor: lm_head.weight      # the failure that the next figures belong to
//     tried: 500.00 MiB           allocated: {value: 37.52 GiB, within: 0.15 GiB}
//     free: {under: 64 MiB}       first_failed_layer: 22  idle_gpus: [3, 2]
//
// Memory figures are those of the verdict; where the run went on after caught failures, those of
// the warning about `tensor`, or of the last one. `warnings` may be a count or a list of maps with
// such keys, each to be met by one warning. tolerance.h gives the forms of a figure.
#pragma once

#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/report/report.h"
#include "sim/scenario/job_spec.h"

namespace sim::study {

struct CheckLine {
  std::string key, expected, found;
  std::string deviation;  // how far off, where that can be said
  bool pass = false;
};

// Unknown keys and values that cannot be read are filed as errors.
std::vector<CheckLine> check_expectations(const std::vector<Expectation>& expectations,
                                          const report::Report& report, Diagnostics& diagnostics);

bool all_pass(const std::vector<CheckLine>& lines);

// Aligned: "ok    allocated  37.52 GiB within 0.15 GiB  37.60 GiB  +82.00 MiB"
std::string to_text(const std::vector<CheckLine>& lines);

}  // namespace sim::study
