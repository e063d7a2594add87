// transformers.Trainer (trainer.py, 4.28 to 5): no_sync for all but the last micro-batch of a step,
// MixedPrecision from bf16/fp16, clipping to 1.0.
#include "sim/program/trainers/trainer.h"

namespace sim::program {

namespace {

WrapperSettings wrapper(const Software& software) {
  return {true, trainer_limits_all_gathers(software), true};
}

std::string_view default_attention(const Software& software) {
  return sdpa_is_default(software) ? "sdpa" : "eager";
}

plan::AttentionKind flash_attention() { return plan::AttentionKind::flash_attention_2; }

void run(Session& session, Strategy& strategy, const Optimizer& optimizer,
         Assumptions& assumptions) {
  initialise(session, assumptions);
  LoadedModel model = load_model(session);
  copy_reference(session, model);
  prepare_adapters(session, model);
  session.builder.phase("wrap");
  strategy.wrap(session, model);
  session.builder.phase("optimizer_init");
  // TrainingArguments.max_grad_norm is 1.0 unless set; 0 turns clipping off.
  const auto& norm = session.scenario.job.max_grad_norm;
  if (!norm) assumptions.add("job.max_grad_norm", "1.0", "default of TrainingArguments");
  training_steps(session, strategy, optimizer, {true, !norm || norm->value > 0});
  checkpoint_save(session, strategy);
}

}  // namespace

extern const Trainer kHfTrainer;
const Trainer kHfTrainer{"hf_trainer",      "transformers.Trainer", wrapper,
                         default_attention, flash_attention,        run};

}  // namespace sim::program
