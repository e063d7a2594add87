#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kCast{"cast", "copy to another element type"};

namespace {
Var finish_cast(Node& n, int operand, TensorType from, DType dtype) {
  const TensorType to{dtype, from.shape};
  Var y = n.out(to);
  n.launch(compute::kCopy, {from}, {to});
  if (n.needs(operand)) {
    n.launch_backward(compute::kCopy, {to}, {from});
    n.produce(operand, from);
  }
  return y;
}
}  // namespace

Var cast(GraphBuilder& g, Var x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const TensorType from = x.type();
  Node n(g, kCast);
  const int xi = n.in(std::move(x));
  return finish_cast(n, xi, from, dtype);
}

Var cast_weight(GraphBuilder& g, const Weight& w, DType dtype) {
  Node n(g, kCast);
  const int wi = n.in(w);
  return finish_cast(n, wi, w.type, dtype);
}

Var autocast(GraphBuilder& g, Var x) {
  if (!g.facts().autocast || x.dtype() != DType::f32) return x;
  return cast(g, std::move(x), *g.facts().autocast);
}

}  // namespace sim::plan
