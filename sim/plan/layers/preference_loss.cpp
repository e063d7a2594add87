#include "sim/plan/layers/layers.h"

namespace sim::plan {

namespace {

// xtuner model/dpo.py _gather_masked_logits, trl get_batch_logps: log_softmax over the vocabulary,
// then the label's entry of each position.
Var log_probabilities(GraphBuilder& g, Var logits, const Var& labels) {
  const Shape s = logits.shape();
  const std::int64_t tokens = s[0] * s[1];
  Var rows = view(g, std::move(logits), {tokens, s[2]});
  return token_log_probabilities(g, std::move(rows), view(g, labels, {tokens}));
}

}  // namespace

// The caller's variables hold both logits to the end.
Var preference_loss(GraphBuilder& g, Var policy, Var reference, const Var& labels) {
  Var chosen = log_probabilities(g, policy, labels);
  Var baseline = log_probabilities(g, reference, labels);
  const std::int64_t tokens = chosen.shape()[0];
  Var ratio = add(g, std::move(chosen), neg(g, std::move(baseline)));
  return mean_last(g, view(g, std::move(ratio), {1, tokens}));
}

}  // namespace sim::plan
