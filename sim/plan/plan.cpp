#include "sim/plan/plan.h"

#include "sim/plan/architectures/architecture.h"

namespace sim::plan {

std::int64_t DeviceMesh::world_size() const {
  std::int64_t n = 1;
  for (const Axis& axis : axes) n *= axis.size;
  return n;
}

std::optional<Plan> make_plan(const Scenario& scenario, const Implementations& implementations,
                              Diagnostics& diagnostics) {
  const Architecture* architecture =
      architecture_catalog().find(scenario.model.architecture, diagnostics);
  if (architecture == nullptr) return std::nullopt;
  const JobSpec& job = scenario.job;
  GraphBuilder builder(implementations, job.precision.weights.value);
  std::optional<std::int64_t> vocab;
  if (job.vocab_size) vocab = job.vocab_size->value;
  Var loss = architecture->build(scenario.model, vocab, builder, diagnostics);
  if (!loss) return std::nullopt;

  Plan plan;
  plan.graph = builder.finish(std::move(loss));
  plan.mesh.axes = {{"dp", scenario.cluster.world_size()}};
  plan.implementations = implementations;
  plan.recompute = job.checkpointing == ActivationCheckpointing::full;
  plan.recompute_reentrant = job.checkpoint_reentrant.value_or(true);
  return plan;
}

std::int64_t parameter_count(const LayerGraph& graph) {
  std::int64_t n = 0;
  for (const Parameter& p : graph.parameters) n += p.matrix.elements();
  return n;
}

}  // namespace sim::plan
