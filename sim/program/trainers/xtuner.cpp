// xtuner 0.1.x (xtuner/model/{sft,dpo}.py) on mmengine's Runner: every adapted model is prepared as
// if it were quantised; gradients are clipped to 1 (the shipped configs' optim_wrapper) and
// synchronised in the last micro-batch of a step (mmengine optim/optimizer/optimizer_wrapper.py
// optim_context).
#include "sim/program/trainers/trainer.h"

namespace sim::program {

namespace {

// mmengine runner.py wrap_model: find_unused_parameters=False unless the config sets it.
WrapperSettings wrapper(const Software&) {
  WrapperSettings settings;
  settings.find_unused_parameters = false;
  settings.builds_sharded = true;  // tools/train.py keeps an HfDeepSpeedConfig alive
  return settings;
}

// sft.py _prepare_for_flash_attn: flash attention where it is installed; the runs that this trainer
// is meant for have it.
std::string_view default_attention(const Software&) { return "flash_attention_2"; }

plan::AttentionKind flash_attention() { return plan::AttentionKind::flash_attention_2; }

// The loss is read when it is logged; zero_grad() takes torch's default.
TrainingLoop loop(const JobSpec& job, const Software&, Assumptions& assumptions) {
  if (!job.max_grad_norm) {
    assumptions.add("job.max_grad_norm", "1.0", "max_norm of the shipped configs");
  }
  return {.reads_loss = false,
          .no_sync = true,
          .clips = !job.max_grad_norm || job.max_grad_norm->value > 0,
          .gradients_to_none = std::nullopt};
}

}  // namespace

extern const Trainer kXtuner;
const Trainer kXtuner{"xtuner",
                      "xtuner 0.1 on mmengine: SFT and DPO",
                      wrapper,
                      default_attention,
                      flash_attention,
                      false,
                      loop,
                      std::nullopt,
                      true,
                      "ref_llm"};

}  // namespace sim::program
