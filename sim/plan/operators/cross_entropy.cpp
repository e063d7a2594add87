#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kCrossEntropy{"cross_entropy", "log_softmax and nll_loss over the vocabulary"};

namespace {
const Operator kLogSoftmax{"log_softmax", ""}, kNllLoss{"nll_loss", ""};
}

// Under autocast cross_entropy_loss is on the fp32 list: a lower logits dtype is cast first, and
// the copy lives only through log_softmax.
Var cross_entropy(GraphBuilder& g, Var logits, Var labels) {
  if (g.facts().autocast) logits = cast(g, std::move(logits), DType::f32);
  const TensorType t = logits.type();
  Var log_probabilities;
  {
    Node n(g, kLogSoftmax);
    const int xi = n.in(std::move(logits));
    log_probabilities = n.out(t);
    n.launch(compute::kSoftmax, {t}, {t});
    n.save(log_probabilities);
    if (n.needs(xi)) {
      n.launch_backward(compute::kSoftmax, {t, t}, {t});
      n.produce(xi, t);
    }
  }
  const TensorType ids = labels.type();
  const TensorType scalar{t.dtype, {}};
  Node n(g, kNllLoss);
  const Var kept = log_probabilities, kept_labels = labels;
  const int xi = n.in(std::move(log_probabilities));
  n.in(std::move(labels));
  Var loss = n.out(scalar);
  Var weight = n.out(scalar);
  n.launch(compute::kReduction, {ids}, {scalar});
  n.save(kept);
  n.save(kept_labels);
  n.save(weight);
  if (n.needs(xi)) {
    n.launch_backward(compute::kFill, {}, {t});
    n.launch_backward(compute::kElementwise, {ids}, {ids});
    n.produce(xi, t);
  }
  return loss;
}

}  // namespace sim::plan
