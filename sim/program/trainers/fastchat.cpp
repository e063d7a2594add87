// FastChat fastchat/train/train_mem.py: replaces LLaMA attention by a packed flash kernel, then
// runs transformers.Trainer; saves by safe_save_model_for_hf_trainer.
#include "sim/program/trainers/trainer.h"

namespace sim::program {

namespace {

WrapperSettings wrapper(const Software& software) {
  return {true, trainer_limits_all_gathers(software), true};
}

std::string_view default_attention(const Software&) { return "flash_attention_2"; }

plan::AttentionKind flash_attention() { return plan::AttentionKind::flash_packed; }

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

extern const Trainer kFastchat;
const Trainer kFastchat{
    "fastchat",
    "FastChat train_mem on transformers.Trainer, with its own attention patch and save",
    wrapper,
    default_attention,
    flash_attention,
    false,
    loop,
    std::chrono::seconds(1800)};

}  // namespace sim::program
