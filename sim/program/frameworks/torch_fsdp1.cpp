#include <fmt/format.h>

#include <algorithm>

#include "sim/program/hooks/fsdp.h"
#include "sim/program/strategy.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

// Mixed precision where the scenario asks for it, else where the trainer sets it from its autocast
// dtype.
std::optional<DType> low_precision(const Scenario& scenario, const WrapperSettings& trainer) {
  const PrecisionSpec& p = scenario.job.precision;
  if (!p.autocast || !p.mixed_precision.value_or(trainer.sets_mixed_precision)) return std::nullopt;
  return p.autocast->value;
}

void precision(const Scenario& scenario, const StrategySpec*, const WrapperSettings& trainer,
               plan::Implementations& implementations) {
  implementations.compute =
      low_precision(scenario, trainer).value_or(scenario.job.precision.weights.value);
  // Views of a flat parameter are no leaves: autocast casts them anew at every use
  // (autocast_mode.cpp).
  implementations.autocast_caches_weights = false;
}

constexpr Choice<bool> kShardings[] = {{"full_shard", true}, {"shard_grad_op", false}};

bool check_wrap(const plan::LayerGraph& graph, const Named& wrap, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const plan::Block& block : graph.blocks) {
    if (block.class_name == wrap.name) return true;
    if (known.empty() || known.back() != block.class_name) known.emplace_back(block.class_name);
  }
  report_unknown_name("layer class to wrap", wrap, known, diagnostics);
  return false;
}

std::unique_ptr<Strategy> make(const Session& session, const StrategySpec* spec,
                               const WrapperSettings& trainer, Assumptions& assumptions,
                               Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  ReadContext context{diagnostics, &assumptions};
  const ConfigNode none;
  ConfigReader options(spec != nullptr ? spec->options : none, "job.strategy.fsdp", context);
  FsdpOptions o;
  o.reshard_after_forward =
      options.choice<bool>("sharding", kShardings, "FSDP's own default").value;
  if (const auto wrap = options.find_named("wrap")) {
    if (check_wrap(session.plan.graph, *wrap, diagnostics)) o.wrap = wrap->name;
  } else {
    options.assume("wrap", "none", "without a wrap policy the whole model is one unit");
  }
  o.limit_all_gathers =
      options
          .optional<bool>("limit_all_gathers",
                          trainer.limit_all_gathers.value_or(session.torch.limit_all_gathers),
                          trainer.limit_all_gathers ? "what the trainer passes"
                                                    : "default of this torch release")
          .value;
  o.backward_prefetch =
      options
          .optional<bool>("backward_prefetch",
                          trainer.backward_prefetch.value_or(session.torch.backward_prefetch),
                          trainer.backward_prefetch
                              ? "what the trainer passes (BACKWARD_PRE)"
                              : "default of this torch release (BACKWARD_PRE)")
          .value;
  options.find<bool>("use_orig_params");  // the same storages either way
  options.finish();
  o.param_dtype = low_precision(session.scenario, trainer);
  o.cast_buffers = o.param_dtype.has_value();
  if (!session.scenario.job.precision.mixed_precision) {
    options.assume("mixed_precision", o.param_dtype ? std::string(to_text(*o.param_dtype)) : "none",
                   trainer.sets_mixed_precision ? "the trainer passes its autocast dtype"
                                                : "nothing is passed");
  }
  if (session.world_size == 1) {
    diagnostics.error(spec != nullptr ? spec->name.at : session.scenario.job.framework->at,
                      "one process has nothing to shard over",
                      "give cluster.processes_per_node, or leave the strategy out");
  }
  const auto& save = session.scenario.job.save;
  if (save && save->state_dict.value != SaveSpec::StateDict::full) {
    diagnostics.error(save->state_dict.at, "only the full state dict is modelled",
                      "write state_dict: full");
  }
  if (diagnostics.error_count() > errors) return nullptr;
  return std::make_unique<Fsdp>(session, std::move(o));
}

}  // namespace

extern const Framework kTorchFsdp1;
const Framework kTorchFsdp1{"fsdp", "FSDP1: flat parameters sharded over all ranks", precision,
                            make};

}  // namespace sim::program
