#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kReduce{"mean", "mean over the last dimension"};

Var mean_last(GraphBuilder& g, Var x) {
  const TensorType in = x.type();
  TensorType out = in;
  out.shape[-1] = 1;
  Node n(g, kReduce);
  const int xi = n.in(std::move(x));
  Var y = n.out(out);
  n.launch(compute::kReduction, {in}, {out});
  if (n.needs(xi)) {
    // grad.expand(sizes) is a view; dividing it by the count makes the full tensor.
    n.launch_backward(compute::kElementwise, {out}, {in});
    n.produce(xi, in);
  }
  return y;
}

}  // namespace sim::plan
