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

TrainingLoop loop(const JobSpec& job, const Software&, Assumptions&) {
  return {.reads_loss = false,
          .no_sync = false,
          .clips = job.max_grad_norm && job.max_grad_norm->value > 0,
          .gradients_to_none = true};
}

}  // namespace

extern const Trainer kPytorch;
const Trainer kPytorch{"pytorch",
                       "a bare loop: forward, backward, step, zero_grad(set_to_none=True)",
                       wrapper,
                       default_attention,
                       flash_attention,
                       true,
                       loop,
                       std::nullopt};

}  // namespace sim::program
