// rehearse plan SCENARIO: what is computed where, as text.
#include <memory>

#include <CLI/CLI.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/plan/plan_text.h"
#include "sim/study/run.h"

namespace sim::cli {
namespace {

struct Options {
  ScenarioArguments scenario;
  bool full = false;
};

int print(const Options& options) {
  Diagnostics diagnostics;
  const std::vector<Override> settings = overrides(options.scenario, diagnostics);
  if (diagnostics.has_errors()) return refuse(diagnostics);
  const auto stages =
      study::prepare(options.scenario.path, default_data_roots(), settings, diagnostics);
  if (!stages || !may_write(options.scenario.output, {stages->scenario.model.path}, diagnostics)) {
    return refuse(diagnostics);
  }
  print_diagnostics(diagnostics);
  write_result(plan::to_text(stages->plan, options.full), options.scenario.output);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, options->scenario);
  app.add_flag("--full", options->full, "every block, though they are alike");
  return [options] { return print(*options); };
}

}  // namespace

const Command kPlan{"plan", "print the layer graph: operators, tensors, blocks", kPrinted, add};

}  // namespace sim::cli
