#include <memory>
#include <string>

#include "sim/program/strategy.h"
#include "sim/study/run.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

TEST_CASE("job.framework may stand alone, with the framework's defaults") {
  for (const program::Framework* framework : program::framework_catalog().entries()) {
    Diagnostics diagnostics;
    prepare(
        std::string(SIM_SOURCE_DIR) + "/tests/golden/tiny-fits/scenario.yaml", default_data_roots(),
        {{"job.strategy", "none"}, {"job.framework", std::string(framework->name)}}, diagnostics);
    // Some ask for more; none dies of it.
    INFO(framework->name << "\n" << render(diagnostics));
    CHECK((framework->name == "none" || framework->name == "deepspeed") ==
          diagnostics.has_errors());
  }
}

}  // namespace
}  // namespace sim::study
