#include "sim/plan/layers/layers.h"

namespace sim::plan {

// LlamaForCausalLM.forward by release: see LossKind. The shifted copy is a local of the forward;
// the logits go back with the loss.
LossResult language_model_loss(GraphBuilder& g, Var logits, const Var& labels) {
  const Shape full = logits.shape();
  const std::int64_t b = full[0], s = full[1], v = full[2];
  const Var returned = g.facts().loss_function_upcasts ? logits : Var();
  if (g.facts().loss != LossKind::shift_then_upcast)
    logits = cast(g, std::move(logits), DType::f32);
  if (g.facts().loss == LossKind::upcast_then_pad) {
    // ForCausalLMLoss pads the labels by one and drops the first instead of cutting the logits.
    Var padded = make(g, {DType::i64, {b, s + 1}});
    Var shifted = contiguous(g, slice(g, padded, {b, s}));
    Var loss = cross_entropy(g, view(g, logits, {b * s, v}), view(g, shifted, {b * s}));
    logits.reset();
    return {std::move(loss), returned};
  }
  Var shifted = contiguous(g, slice(g, logits, {b, s - 1, v}));
  Var targets = contiguous(g, slice(g, labels, {b, s - 1}));
  shifted = view(g, std::move(shifted), {b * (s - 1), v});
  targets = view(g, std::move(targets), {b * (s - 1)});
  Var loss = cross_entropy(g, shifted, targets);
  if (returned) logits = returned;
  return {std::move(loss), std::move(logits)};
}

}  // namespace sim::plan
