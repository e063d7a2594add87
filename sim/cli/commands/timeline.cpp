// rehearse timeline SCENARIO: what happened, exactly, as text.
#include <memory>

#include <CLI/CLI.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/study/run.h"
#include "sim/timeline/timeline_text.h"

namespace sim::cli {
namespace {

struct Options {
  ScenarioArguments scenario;
  bool slices = false;
};

std::optional<study::Run> simulate(const Options& options, const std::vector<Override>& settings,
                                   Diagnostics& diagnostics) {
  engine::SimulateOptions recorded;
  recorded.record_slices = options.slices;
  const Progress progress("simulating");
  return study::run(options.scenario.path, default_data_roots(), settings, recorded, diagnostics);
}

int print(const Options& options) {
  Diagnostics diagnostics;
  const std::vector<Override> settings = overrides(options.scenario, diagnostics);
  if (diagnostics.has_errors()) return refuse(diagnostics);
  const auto result = simulate(options, settings, diagnostics);
  if (!result ||
      !may_write(options.scenario.output, {result->stages.scenario.model.path}, diagnostics)) {
    return refuse(diagnostics);
  }
  print_diagnostics(diagnostics);
  write_result(to_text(result->timeline), options.scenario.output);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, options->scenario);
  app.add_flag("--slices", options->slices, "every kernel, collective and copy too (slower)");
  return [options] { return print(*options); };
}

}  // namespace

const Command kTimeline{"timeline", "print what happened, to the byte and the picosecond", kPrinted,
                        add};

}  // namespace sim::cli
