#include "sim/program/hooks/ddp.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

void precision(const Scenario& scenario, const StrategySpec*, const WrapperSettings&,
               plan::Implementations& implementations) {
  implementations.compute = scenario.job.precision.weights.value;
}

std::unique_ptr<Strategy> make(const Session& session, const StrategySpec* spec,
                               const WrapperSettings& trainer, Assumptions& assumptions,
                               Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  ReadContext context{diagnostics, &assumptions};
  const ConfigNode none;
  ConfigReader reader(spec != nullptr ? spec->options : none, "job.strategy.ddp", context);
  DdpOptions o;
  o.find_unused_parameters =
      reader
          .optional<bool>("find_unused_parameters", trainer.find_unused_parameters.value_or(false),
                          trainer.find_unused_parameters ? "what the trainer passes"
                                                         : "default of DistributedDataParallel")
          .value;
  o.static_graph =
      reader.optional<bool>("static_graph", false, "default of DistributedDataParallel").value;
  o.gradient_as_bucket_view =
      reader.optional<bool>("gradient_as_bucket_view", false, "default of DistributedDataParallel")
          .value;
  o.bucket_cap =
      reader.optional<Bytes>("bucket_cap", 25_MiB, "default of DistributedDataParallel").value;
  reader.finish();
  if (o.bucket_cap <= Bytes{0}) {
    diagnostics.error(reader.at(), "job.strategy.ddp.bucket_cap must be above 0");
  }
  if (diagnostics.error_count() > errors) return nullptr;
  return std::make_unique<Ddp>(session, o);
}

}  // namespace

extern const Framework kTorchDdp;
const Framework kTorchDdp{"ddp", "DistributedDataParallel: a whole replica on every rank",
                          precision, make};

}  // namespace sim::program
