// rehearse check SCENARIO: is the scenario valid, and does it do what it expects of itself?
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/cli/scenario_arguments.h"
#include "sim/report/verdict_text.h"
#include "sim/study/check.h"
#include "sim/study/run.h"

namespace sim::cli {
namespace {

std::optional<study::Run> simulate(const std::string& path, const std::vector<Override>& settings,
                                   Diagnostics& diagnostics) {
  const Progress progress("simulating");
  return study::run(path, default_data_roots(), settings, {}, diagnostics);
}

int check(const ScenarioArguments& arguments) {
  Diagnostics diagnostics;
  const std::vector<Override> settings = overrides(arguments, diagnostics);
  if (diagnostics.has_errors()) return refuse(diagnostics);
  // The stages before the simulation find every mistake.
  const auto stages = study::prepare(arguments.path, default_data_roots(), settings, diagnostics);
  if (!stages || !may_write(arguments.output, {stages->scenario.model.path}, diagnostics)) {
    return refuse(diagnostics);
  }
  if (stages->scenario.expect.empty()) {
    print_diagnostics(diagnostics);
    write_result(fmt::format("{}: valid; it expects nothing\n", arguments.path), arguments.output);
    return 0;
  }
  Diagnostics whole;
  const auto result = simulate(arguments.path, settings, whole);
  if (!result) return refuse(whole);
  const auto lines = study::check_expectations(stages->scenario.expect, result->report, whole);
  if (whole.has_errors()) return refuse(whole);
  print_diagnostics(whole);
  const bool pass = study::all_pass(lines);
  write_result(fmt::format("{}: {}\n{}", arguments.path, pass ? "as expected" : "not as expected",
                           study::to_text(lines)),
               arguments.output);
  return pass ? 0 : 1;
}

std::function<int()> add(CLI::App& app) {
  auto arguments = std::make_shared<ScenarioArguments>();
  declare(app, *arguments);
  return [arguments] { return check(*arguments); };
}

}  // namespace

const Command kCheck{"check", "validate a scenario and compare it with what it expects",
                     "0 it is valid and does what it expects, 1 it does not do that", add};

}  // namespace sim::cli
