#include "sim/plan/layers/layers.h"

namespace sim::plan {

namespace {

Var shifted_loss(GraphBuilder& g, const Var& logits, const Var& labels) {
  const Shape full = logits.shape();
  const std::int64_t b = full[0], s = full[1], v = full[2];
  if (g.facts().loss == LossKind::upcast_then_pad) {
    // ForCausalLMLoss pads the labels by one and drops the first instead of cutting the logits.
    Var padded = make(g, {DType::i64, {b, s + 1}});
    Var shifted = contiguous(g, slice(g, padded, {b, s}));
    return cross_entropy(g, view(g, logits, {b * s, v}), view(g, shifted, {b * s}));
  }
  Var shifted = contiguous(g, slice(g, logits, {b, s - 1, v}));
  Var targets = contiguous(g, slice(g, labels, {b, s - 1}));
  shifted = view(g, std::move(shifted), {b * (s - 1), v});
  targets = view(g, std::move(targets), {b * (s - 1)});
  return cross_entropy(g, shifted, targets);
}

}  // namespace

// LlamaForCausalLM.forward by release: see LossKind. The shifted copy is a local of the forward;
// the logits go back with the loss: as they are where the loss function makes its own fp32 copy.
LossResult language_model_loss(GraphBuilder& g, Var logits, const Var& labels, bool used) {
  const Var returned = g.facts().loss_function_upcasts ? logits : Var();
  if (g.facts().loss != LossKind::shift_then_upcast)
    logits = cast(g, std::move(logits), DType::f32);
  Var loss;
  if (used) {
    loss = shifted_loss(g, logits, labels);
  } else {
    const auto no_grad = g.no_grad();
    loss = shifted_loss(g, logits, labels);
  }
  if (returned) logits = returned;
  return {std::move(loss), std::move(logits)};
}

}  // namespace sim::plan
