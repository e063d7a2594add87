#include <fmt/format.h>

#include "sim/program/hooks/whole_model.h"
#include "sim/program/strategy.h"

namespace sim::program {

namespace {

void precision(const Scenario& scenario, const StrategySpec*, const WrapperSettings&,
               plan::Implementations& implementations) {
  implementations.compute = scenario.job.precision.weights.value;
}

std::unique_ptr<Strategy> make(const Session& session, const StrategySpec*, const WrapperSettings&,
                               Assumptions&, Diagnostics& diagnostics) {
  if (session.world_size > 1) {
    diagnostics.error(
        session.scenario.cluster.processes_per_node.at,
        fmt::format("{} processes need a strategy that keeps them together", session.world_size),
        "give job.strategy, e.g. {fsdp: {sharding: full_shard}}, or one process");
    return nullptr;
  }
  return std::make_unique<WholeModel>(session);
}

}  // namespace

extern const Framework kNone;
const Framework kNone{"none", "one process, no wrapper", precision, make};

}  // namespace sim::program
