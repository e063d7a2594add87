// transformers.Trainer (trainer.py, 4.28 to 5): no_sync for all but the last micro-batch of a step,
// MixedPrecision from bf16/fp16, clipping to 1.0, ddp_timeout of 1800 s.
#include "sim/program/trainers/trainer.h"

namespace sim::program {

namespace {

WrapperSettings wrapper(const Software& software) {
  WrapperSettings settings{true, trainer_limits_all_gathers(software), true};
  settings.builds_sharded = true;  // TrainingArguments keeps an HfTrainerDeepSpeedConfig alive
  return settings;
}

std::string_view default_attention(const Software& software) {
  return sdpa_is_default(software) ? "sdpa" : "eager";
}

plan::AttentionKind flash_attention() { return plan::AttentionKind::flash_attention_2; }

// TrainingArguments: max_grad_norm is 1.0 unless set, 0 turns clipping off; logging_nan_inf_filter
// (True) asks isnan(loss) after every micro-batch, so the host waits there; model.zero_grad() takes
// torch's default.
TrainingLoop loop(const JobSpec& job, const Software&, Assumptions& assumptions) {
  if (!job.max_grad_norm) {
    assumptions.add("job.max_grad_norm", "1.0", "default of TrainingArguments");
  }
  return {.reads_loss = true,
          .no_sync = true,
          .clips = !job.max_grad_norm || job.max_grad_norm->value > 0,
          .cache_emptied_before_save = true,
          .gradients_to_none = std::nullopt};
}

}  // namespace

extern const Trainer kHfTrainer;
const Trainer kHfTrainer{
    "hf_trainer", "transformers.Trainer",    wrapper, default_attention, flash_attention, false,
    loop,         std::chrono::seconds(1800)};

}  // namespace sim::program
