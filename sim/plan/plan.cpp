#include "sim/plan/plan.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "sim/base/text.h"
#include "sim/plan/architectures/architecture.h"
#include "sim/plan/layers/layers.h"
#include "sim/scenario/config_reader.h"

namespace sim::plan {

std::int64_t DeviceMesh::world_size() const {
  std::int64_t n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

namespace {

// Letters and digits in lower case: Llama_For_CausalLM and LLaMAForCausalLM are one name.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// Class names are copied, not typed: one that differs by a letter (Mixtral, Mistral) is another
// architecture, so only another way of writing it is suggested.
const Architecture* find_architecture(const Named& named, Diagnostics& diagnostics) {
  if (const Architecture* found = architecture_catalog().find(named.name)) return found;
  std::string hint = "known: " + join(architecture_catalog().names());
  for (const std::string& name : architecture_catalog().names()) {
    const std::string wanted = folded(named.name), known = folded(name);
    if (wanted == known || wanted + "forcausallm" == known) {
      hint = fmt::format("did you mean '{}'?", name);
    }
  }
  diagnostics.error(named.at,
                    fmt::format("the architecture {} is not modelled", in_quotes(named.name)),
                    std::move(hint));
  return nullptr;
}

}  // namespace

std::optional<Plan> make_plan(const Scenario& scenario, const Implementations& implementations,
                              Assumptions& assumptions, Diagnostics& diagnostics) {
  const Architecture* architecture = find_architecture(scenario.model.architecture, diagnostics);
  if (architecture == nullptr) return std::nullopt;
  const JobSpec& job = scenario.job;
  GraphBuilder builder(implementations, job.precision.weights.value);
  std::optional<std::int64_t> vocab;
  if (job.vocab_size) vocab = job.vocab_size->value;
  ReadContext context{diagnostics, &assumptions};
  Var loss = architecture->build(scenario.model, vocab, builder, context);
  if (!loss) return std::nullopt;
  if (implementations.adapters) {
    const std::size_t errors = diagnostics.error_count();
    check_targets(*implementations.adapters, builder.linear_modules(), diagnostics);
    if (diagnostics.error_count() > errors) return std::nullopt;
  }

  Plan plan;
  plan.graph = builder.finish(std::move(loss));
  plan.mesh.axes = {{"dp", scenario.cluster.world_size()}};
  plan.implementations = implementations;
  plan.recompute = job.checkpointing == ActivationCheckpointing::full;
  plan.recompute_reentrant = job.checkpoint_reentrant.value_or(true);
  return plan;
}

void check_model(const ModelSpec& model, Diagnostics& diagnostics) {
  const Architecture* architecture = find_architecture(model.architecture, diagnostics);
  if (architecture == nullptr) return;
  GraphBuilder builder({}, DType::f32);
  ReadContext context{diagnostics};
  architecture->build(model, std::nullopt, builder, context);
}

std::int64_t parameter_count(const LayerGraph& graph) {
  std::int64_t n = 0;
  for (const Parameter& p : graph.parameters) n += p.matrix.elements();
  return n;
}

}  // namespace sim::plan
