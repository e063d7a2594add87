// A plain PyTorch loop, as in tutorials: gradients are synchronised in every micro-batch, nothing
// is clipped unless max_grad_norm is given.
#include "sim/program/trainers/trainer.h"

namespace sim::program {

namespace {

WrapperSettings wrapper(const Software&) { return {}; }

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
  static_cast<void>(assumptions);
  const auto& norm = session.scenario.job.max_grad_norm;
  training_steps(session, strategy, optimizer, {false, norm && norm->value > 0});
  checkpoint_save(session, strategy);
}

}  // namespace

extern const Trainer kPytorch;
const Trainer kPytorch{
    "pytorch",       "a bare loop: forward, backward, step, zero_grad(set_to_none=True)",
    wrapper,         default_attention,
    flash_attention, run};

}  // namespace sim::program
