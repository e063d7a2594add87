#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kCrossEntropy{"cross_entropy", "log_softmax and nll_loss over the vocabulary"};

namespace {
const Operator kLogSoftmax{"log_softmax", ""}, kNllLoss{"nll_loss", ""}, kGather{"gather", ""};

Var log_softmax(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  Node n(g, kLogSoftmax);
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kSoftmax, {t}, {t});
  n.save(y);
  if (n.needs(xi)) {
    n.launch_backward(compute::kSoftmax, {t, t}, {t});
    n.produce(xi, t);
  }
  return y;
}
}  // namespace

// Under autocast cross_entropy_loss is on the fp32 list: a lower logits dtype is cast first, and
// the copy lives only through log_softmax.
Var cross_entropy(GraphBuilder& g, Var logits, Var labels) {
  if (g.facts().autocast) logits = cast(g, std::move(logits), DType::f32);
  const TensorType t = logits.type();
  Var log_probabilities = log_softmax(g, std::move(logits));
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

// gather's backward scatters into zeros of the whole size.
Var token_log_probabilities(GraphBuilder& g, Var logits, Var labels) {
  if (g.facts().autocast) logits = cast(g, std::move(logits), DType::f32);
  Var all = log_softmax(g, std::move(logits));
  const TensorType t = all.type(), ids = labels.type();
  const TensorType out{t.dtype, ids.shape};
  Node n(g, kGather);
  const Var kept = labels;
  const int xi = n.in(std::move(all));
  n.in(std::move(labels));
  Var y = n.out(out);
  n.launch(compute::kElementwise, {ids, out}, {out});
  n.save(kept);
  if (n.needs(xi)) {
    n.launch_backward(compute::kFill, {}, {t});
    n.launch_backward(compute::kElementwise, {ids, out}, {out});
    n.produce(xi, t);
  }
  return y;
}

}  // namespace sim::plan
