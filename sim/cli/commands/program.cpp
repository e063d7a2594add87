// rehearse program SCENARIO: what the Python thread of one rank issues, as text.
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/program/program_text.h"
#include "sim/study/run.h"

namespace sim::cli {
namespace {

struct Options {
  ScenarioArguments scenario;
  std::uint32_t rank = 0;
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
  const program::Workload& workload = stages->lowered.workload;
  if (options.rank >= workload.program_of.size()) {
    diagnostics.error({}, fmt::format("--rank {}: the job has ranks 0 to {}", options.rank,
                                      workload.program_of.size() - 1));
    return refuse(diagnostics);
  }
  print_diagnostics(diagnostics);
  write_result(program::to_text(workload.programs[workload.program_of[RankId{options.rank}]]),
               options.scenario.output);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, options->scenario);
  app.add_option("--rank", options->rank, "whose program, 0 by default");
  return [options] { return print(*options); };
}

}  // namespace

const Command kProgram{"program", "print what one rank issues, in host order", kPrinted, add};

}  // namespace sim::cli
