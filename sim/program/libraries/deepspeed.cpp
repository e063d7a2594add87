#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"

namespace sim::program {

namespace {

// The DeepSpeed release of the month in which each torch release came out (dates of both's tags).
std::string_view beside(const Release& torch) {
  return by_release<std::string_view>({torch.major, torch.minor, torch.patch, {}},
                                      {{{1, 13, 0, {}}, "0.7.5"},
                                       {{2, 0, 0, {}}, "0.8.3"},
                                       {{2, 1, 0, {}}, "0.11.1"},
                                       {{2, 2, 0, {}}, "0.13.1"},
                                       {{2, 3, 0, {}}, "0.14.2"},
                                       {{2, 4, 0, {}}, "0.14.4"},
                                       {{2, 5, 0, {}}, "0.15.2"},
                                       {{2, 6, 0, {}}, "0.16.3"},
                                       {{2, 7, 0, {}}, "0.16.7"},
                                       {{2, 8, 0, {}}, "0.17.2"},
                                       {{2, 9, 0, {}}, "0.18.0"}});
}

bool used_by(const JobSpec& job) {
  for (const StrategySpec& strategy : job.strategies) {
    const std::string& name = strategy.name.name;
    if (name == "deepspeed" || name.starts_with("zero")) return true;
  }
  return job.framework &&
         (job.framework->name == "deepspeed" || job.framework->name.starts_with("zero"));
}

}  // namespace

const Library kDeepSpeed{"deepspeed", "ZeRO: partitioned states, gradients and parameters",
                         "0.19.5", beside, used_by};

DeepSpeedFacts deepspeed_facts(const Software& software) {
  const Release& asked = software.of("deepspeed");
  const Release r{asked.major, asked.minor, asked.patch, {}};
  DeepSpeedFacts f;
  // zero/stage3.py and stage_1_and_2.py, initialize_optimizer_states: takes a step on zero
  // gradients until 0.13; since 0.14.0 the states come with the first real step.
  f.states_made_at_once = by_release<bool>(r, {{{0, 6, 0, {}}, true}, {{0, 14, 0, {}}, false}});
  // engine.py _configure_distributed_model: module.half() or .bfloat16(), buffers with it, until
  // 0.19.1; since 0.19.2 the parameters alone (_cast_module_mixed_precision).
  f.casts_buffers = by_release<bool>(r, {{{0, 6, 0, {}}, true}, {{0, 19, 2, {}}, false}});
  // zero/stage_1_and_2.py: the offloaded fp32 partition is page-locked since 0.14.1 (pull request
  // 5301).
  f.pins_partition = by_release<bool>(r, {{{0, 6, 0, {}}, false}, {{0, 14, 1, {}}, true}});
  // zero/config.py: overlap_comm is None by default, and the validator that makes it "stage 3" does
  // not run on defaults before the model_validator of 0.15.0, so None (false) it stays.
  f.overlaps_in_stage_3 = by_release<bool>(r, {{{0, 6, 0, {}}, false}, {{0, 15, 0, {}}, true}});
  return f;
}

}  // namespace sim::program
