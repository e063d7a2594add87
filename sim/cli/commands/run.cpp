// rehearse run SCENARIO: the whole way, and the report.
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/memory_snapshot.h"
#include "sim/report/writers/writer.h"
#include "sim/study/run.h"

namespace sim::cli {
namespace {

struct Options {
  ScenarioArguments scenario;
  std::string format = "text";
  bool json = false;
  bool slices = false;
  std::string memory_snapshot;
  std::string colour = "auto";
};

std::optional<study::Run> simulate(const Options& options, const std::vector<Override>& settings,
                                   Diagnostics& diagnostics) {
  engine::SimulateOptions recorded;
  recorded.record_slices = options.slices;
  recorded.record_allocator = !options.memory_snapshot.empty();
  const Progress progress("simulating");
  return study::run(options.scenario.path, default_data_roots(), settings, recorded, diagnostics);
}

int run(const Options& options) {
  Diagnostics diagnostics;
  const std::vector<Override> settings = overrides(options.scenario, diagnostics);
  if (diagnostics.has_errors()) return refuse(diagnostics);
  const auto result = simulate(options, settings, diagnostics);
  const auto may_replace = [&](const std::string& output) {
    return may_write(output, {options.scenario.path, result->stages.scenario.model.path},
                     diagnostics);
  };
  if (!result || !may_replace(options.scenario.output) || !may_replace(options.memory_snapshot)) {
    return refuse(diagnostics);
  }
  print_diagnostics(diagnostics);

  if (!options.memory_snapshot.empty()) {
    write_result(report::memory_snapshot(result->stages.lowered.workload, result->timeline),
                 options.memory_snapshot);
  }
  const report::Writer* writer =
      report::writer_catalog().find(options.json ? "json" : options.format);
  const bool to_terminal = options.scenario.output.empty() || options.scenario.output == "-";
  const bool colour = to_terminal && want_colour(options.colour, stdout);
  write_result(writer->write(result->report, {colour}), options.scenario.output);
  return std::holds_alternative<Fits>(result->report.verdict) ? 0 : 1;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  declare(app, options->scenario);
  app.add_flag("--json", options->json, "the same as --format json");
  app.add_option("--format", options->format, "form of the report")
      ->check(CLI::IsMember(report::writer_catalog().names()));
  app.add_flag(
      "--slices", options->slices,
      "record every kernel and copy, which tells how much communication is exposed (slower)");
  app.add_option("--memory-snapshot", options->memory_snapshot,
                 "write the allocator's history for PyTorch's memory_viz page (*_snapshot.pickle)")
      ->type_name("FILE");
  app.add_option("--color", options->colour, "colours: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  return [options] { return run(*options); };
}

}  // namespace

const Command kRun{"run", "simulate a scenario and report whether it fits, and why",
                   "0 the job fits, 1 it does not", add};

}  // namespace sim::cli
