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

extern const Trainer kFastchat;
const Trainer kFastchat{
    "fastchat",
    "FastChat train_mem on transformers.Trainer, with its own attention patch and save",
    wrapper,
    default_attention,
    flash_attention,
    run};

}  // namespace sim::program
