#include "sim/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/base/text.h"
#include "sim/base/units_text.h"
#include "sim/scenario/config_reader.h"
#include "sim/scenario/overrides.h"

#ifndef SIM_DATA_HOME
#define SIM_DATA_HOME "."
#endif

namespace sim {
namespace {

// A context longer than the model was made for works, and is seldom meant.
void check_positions(const Scenario& scenario, ReadContext& context) {
  const ConfigNode* positions = scenario.model.config.find("max_position_embeddings");
  if (!positions || !positions->is_scalar()) return;
  Diagnostics unread;  // the architecture's own reader says what is wrong with it
  const auto most = read_value<std::int64_t>(*positions, {"max_position_embeddings"}, unread);
  const Located<std::int64_t>& length = scenario.job.sequence_length;
  if (!most || *most <= 0 || length.value <= *most) return;
  Diagnostic& warning = context.diagnostics.warning(
      length.at, fmt::format("sequence_length = {} is more than the model's {} positions",
                             length.value, *most));
  warning.notes.push_back(
      {Severity::note, positions->at, "max_position_embeddings is set here", {}, {}});
}

void check_observed(const ObservedSpec& observed, const Bytes total, const Span& at,
                    ReadContext& context) {
  const Bytes used = observed.free.value_or(Bytes{}) + observed.reserved.value_or(Bytes{}) +
                     observed.outside_allocator.value_or(Bytes{});
  if (used <= total) return;
  context.diagnostics.error(
      at, fmt::format("observed memory adds up to {}, more than the total of {}", to_text(used),
                      to_text(total)));
}

// A cap that the card does not reach would cap nothing.
void check_cap(const AllocatorSpec& allocator, const ConfigNode& section, Bytes total,
               ReadContext& context) {
  if (!allocator.cap || *allocator.cap <= total) return;
  context.diagnostics.error(section.find("cap")->at,
                            fmt::format("allocator.cap = {} is above the card's {}",
                                        to_text_exact(*allocator.cap), to_text(total)));
}

Scenario read_sections(const ConfigNode& root, const DataRoots& roots, ReadContext& context) {
  Scenario scenario;
  ConfigReader reader(root, "", context);
  const Named model = reader.required_named("model");
  if (!model.name.empty()) {
    auto read = read_model(model, roots.models, context.diagnostics);
    if (read) scenario.model = std::move(*read);
  }
  if (!reader.has("cluster")) reader.required<std::string>("cluster");
  if (!reader.has("job")) reader.required<std::string>("job");
  const auto section = [&](std::string_view key) -> const ConfigNode& {
    static const ConfigNode absent;
    const ConfigNode* node = reader.find_node(key);
    return node ? *node : absent;
  };
  if (reader.has("cluster")) {
    auto cluster = read_cluster(section("cluster"), roots.hardware, context);
    if (cluster) scenario.cluster = std::move(*cluster);
  }
  scenario.software = read_software(section("software"), context);
  if (reader.has("job")) scenario.job = read_job(section("job"), context);
  scenario.allocator = read_allocator(section("allocator"), context);
  scenario.observed = read_observed(section("observed"), context);
  if (scenario.observed.total) scenario.cluster.gpu.total_memory = *scenario.observed.total;
  scenario.expect = read_expect(section("expect"), context);
  check_positions(scenario, context);
  if (scenario.cluster.gpu.total_memory > Bytes{}) {
    check_observed(scenario.observed, scenario.cluster.gpu.total_memory, section("observed").at,
                   context);
    check_cap(scenario.allocator, section("allocator"), scenario.cluster.gpu.total_memory, context);
  }
  reader.finish();
  return scenario;
}

std::optional<Scenario> read_partly(std::shared_ptr<const SourceFile> file, const DataRoots& roots,
                                    const std::vector<Override>& overrides,
                                    Diagnostics& diagnostics, std::set<std::string>* keys) {
  std::optional<ConfigNode> root = parse_config(file, diagnostics);
  if (!root) return std::nullopt;
  for (const Override& override : overrides) lay_over(*root, override, diagnostics);
  Assumptions assumptions;
  ReadContext context{diagnostics, &assumptions, keys};
  Scenario scenario = read_sections(*root, roots, context);
  scenario.name = std::filesystem::path(file->path).stem().string();
  scenario.path = file->path;
  scenario.assumptions = std::move(assumptions);
  return scenario;
}

}  // namespace

DataRoots default_data_roots() {
  const char* home = std::getenv("REHEARSE_HOME");
  const std::string root = home && *home ? home : SIM_DATA_HOME;
  return {root + "/models", root + "/hardware"};
}

std::optional<Scenario> read_scenario(std::shared_ptr<const SourceFile> file,
                                      const DataRoots& roots,
                                      const std::vector<Override>& overrides,
                                      Diagnostics& diagnostics, std::set<std::string>* keys) {
  const std::size_t errors_before = diagnostics.error_count();
  std::optional<Scenario> scenario =
      read_partly(std::move(file), roots, overrides, diagnostics, keys);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return scenario;
}

std::optional<Scenario> read_scenario_partly(const std::string& path, const DataRoots& roots,
                                             const std::vector<Override>& overrides,
                                             Diagnostics& diagnostics) {
  std::shared_ptr<const SourceFile> file = read_source_file(path, {}, diagnostics);
  return file ? read_partly(std::move(file), roots, overrides, diagnostics, nullptr) : std::nullopt;
}

std::optional<Scenario> read_scenario(const std::string& path, const DataRoots& roots,
                                      const std::vector<Override>& overrides,
                                      Diagnostics& diagnostics) {
  std::shared_ptr<const SourceFile> file = read_source_file(path, {}, diagnostics);
  return file ? read_scenario(std::move(file), roots, overrides, diagnostics) : std::nullopt;
}

}  // namespace sim
