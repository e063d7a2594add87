#include "sim/study/run.h"

#include <utility>

namespace sim::study {

namespace {

std::map<std::string, std::string> release_texts(const program::Software& software) {
  std::map<std::string, std::string> texts;
  for (const auto& [library, release] : software.releases) texts[library] = release.text;
  return texts;
}

}  // namespace

std::optional<Stages> prepare(const std::string& path, const DataRoots& roots,
                              const std::vector<Override>& overrides, Diagnostics& diagnostics) {
  std::optional<Scenario> scenario = read_scenario_partly(path, roots, overrides, diagnostics);
  return scenario ? prepare(std::move(*scenario), diagnostics) : std::nullopt;
}

std::optional<Stages> prepare(Scenario scenario, Diagnostics& diagnostics) {
  Stages stages;
  stages.assumptions = scenario.assumptions;
  stages.software = program::resolve_software(scenario, stages.assumptions, diagnostics);
  program::check_names(scenario, diagnostics);
  check_allocator(scenario, stages.software, diagnostics);
  if (diagnostics.has_errors()) {
    // A model that could not be read has no architecture, and its complaint.
    if (!scenario.model.architecture.name.empty()) {
      plan::check_model(scenario.model, diagnostics);
    }
    return std::nullopt;
  }
  const std::optional<plan::Implementations> implementations =
      program::choose_implementations(scenario, stages.software, stages.assumptions, diagnostics);
  if (!implementations || diagnostics.has_errors()) return std::nullopt;
  std::optional<plan::Plan> plan =
      plan::make_plan(scenario, *implementations, stages.assumptions, diagnostics);
  if (!plan || diagnostics.has_errors()) return std::nullopt;
  std::optional<program::Lowered> lowered =
      program::lower(scenario, *plan, stages.software, stages.assumptions, diagnostics);
  if (!lowered || diagnostics.has_errors()) return std::nullopt;
  stages.scenario = std::move(scenario);
  stages.plan = std::move(*plan);
  stages.lowered = std::move(*lowered);
  return stages;
}

namespace {

std::optional<Run> simulate(Stages stages, const engine::SimulateOptions& options,
                            Diagnostics& diagnostics) {
  const std::optional<engine::Machine> machine =
      make_machine(stages.scenario, stages.software, diagnostics);
  if (!machine) return std::nullopt;
  Timeline timeline = engine::simulate(stages.lowered.workload, *machine, options);
  report::Report report = report::analyse(
      {stages.scenario, stages.lowered.workload, stages.lowered.model_flops_per_step,
       stages.lowered.tokens_per_step, stages.assumptions, release_texts(stages.software)},
      timeline);
  return Run{std::move(stages), std::move(timeline), std::move(report)};
}

}  // namespace

std::optional<Run> run(const std::string& path, const DataRoots& roots,
                       const std::vector<Override>& overrides,
                       const engine::SimulateOptions& options, Diagnostics& diagnostics) {
  std::optional<Stages> stages = prepare(path, roots, overrides, diagnostics);
  return stages ? simulate(std::move(*stages), options, diagnostics) : std::nullopt;
}

std::optional<Run> run(Scenario scenario, const engine::SimulateOptions& options,
                       Diagnostics& diagnostics) {
  std::optional<Stages> stages = prepare(std::move(scenario), diagnostics);
  return stages ? simulate(std::move(*stages), options, diagnostics) : std::nullopt;
}

}  // namespace sim::study
