// Runs of the scenarios in scenarios/, for tests on top of the study floor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/study/run.h"
#include "tests/support/catch.h"

namespace sim::study {

// `scenario` is relative to scenarios/. Fails the test with the complaints if it is refused.
inline Run run_of(const std::string& scenario, const std::vector<Override>& overrides) {
  Diagnostics diagnostics;
  auto result = run(std::string(SIM_SOURCE_DIR) + "/scenarios/" + scenario, default_data_roots(),
                    overrides, {}, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(result.has_value());
  return std::move(*result);
}

// Of the first ranks.
inline const report::PhaseSummary& phase(const Run& run, const std::string& name) {
  for (const auto& p : run.report.ranks.front().phases) {
    if (p.name == name) return p;
  }
  FAIL("no phase " << name);
  return run.report.ranks.front().phases.front();
}

}  // namespace sim::study
