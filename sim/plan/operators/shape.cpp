#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kShape{"shape", "views, slices, copies and concatenations"};

namespace {
const Operator kView{"view", ""}, kSlice{"slice", ""}, kContiguous{"contiguous", ""},
    kCat{"cat", ""}, kStack{"stack", ""}, kGather{"index", ""}, kRepeat{"repeat_kv", ""},
    kMake{"make", ""};
}

Var view(GraphBuilder& g, Var x, Shape shape) {
  const DType dtype = x.dtype();
  Node n(g, kView);
  const int xi = n.in(std::move(x));
  Var y = n.view(xi, {dtype, shape});
  if (n.needs(xi)) n.pass_view(xi);
  return y;
}

Var split_heads(GraphBuilder& g, Var x, Shape shape, bool turned) {
  const TensorType in = x.type();
  Node n(g, kView);
  const int xi = n.in(std::move(x));
  Var y = n.view(xi, {in.dtype, shape});
  if (!n.needs(xi)) return y;
  if (turned && shape[1] > 1) {
    n.produce(xi, in);
    n.launch_backward(compute::kCopy, {in}, {in});
  } else {
    n.pass_view(xi);
  }
  return y;
}

Var slice(GraphBuilder& g, Var x, Shape shape) {
  const TensorType in = x.type();
  Node n(g, kSlice);
  const int xi = n.in(std::move(x));
  Var y = n.view(xi, {in.dtype, shape});
  if (n.needs(xi)) {
    n.launch_backward(compute::kFill, {}, {in});
    n.launch_backward(compute::kCopy, {{in.dtype, shape}}, {{in.dtype, shape}});
    n.produce(xi, in);
  }
  return y;
}

Var contiguous(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  Node n(g, kContiguous);
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kCopy, {t}, {t});
  if (n.needs(xi)) n.pass(xi);
  return y;
}

Var clone(GraphBuilder& g, Var x) { return contiguous(g, std::move(x)); }

Var cat(GraphBuilder& g, Var a, Var b, Shape shape) {
  const TensorType out{a.dtype(), shape};
  Node n(g, kCat);
  const int ai = n.in(std::move(a));
  const int bi = n.in(std::move(b));
  Var y = n.out(out);
  n.launch(compute::kCopy, {out}, {out});
  // cat's backward narrows the gradient: views.
  if (n.needs(ai)) n.pass_view(ai);
  if (n.needs(bi)) n.pass_view(bi);
  return y;
}

Var stack3(GraphBuilder& g, Var a, Var b, Var c, Shape shape) {
  const TensorType out{a.dtype(), shape};
  Node n(g, kStack);
  const int operands[] = {n.in(std::move(a)), n.in(std::move(b)), n.in(std::move(c))};
  Var y = n.out(out);
  n.launch(compute::kCopy, {out}, {out});
  for (int operand : operands) {
    if (n.needs(operand)) n.pass_view(operand);
  }
  return y;
}

Var gather_rows(GraphBuilder& g, BufferId table, Var index, TensorType out) {
  const TensorType ids = index.type();
  Node n(g, kGather);
  n.in(table);
  n.in(std::move(index));
  Var y = n.out(out);
  n.launch(compute::kCopy, {ids, out}, {out});
  return y;
}

Var repeat_heads(GraphBuilder& g, Var x, Shape shape) {
  const TensorType in = x.type();
  const TensorType out{in.dtype, shape};
  if (in.shape.elements() == shape.elements()) return x;
  Node n(g, kRepeat);
  const int xi = n.in(std::move(x));
  Var y = n.out(out);
  n.launch(compute::kCopy, {in}, {out});
  if (n.needs(xi)) {
    n.launch_backward(compute::kReduction, {out}, {in});
    n.produce(xi, in);
  }
  return y;
}

Var make(GraphBuilder& g, TensorType type) {
  Node n(g, kMake);
  Var y = n.out(type);
  n.launch(compute::kFill, {}, {type});
  return y;
}

}  // namespace sim::plan
