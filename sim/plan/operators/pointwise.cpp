#include <algorithm>

#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"
#include "sim/plan/operators/reduction_workspace.h"

namespace sim::plan {

const Operator kPointwise{"pointwise", "element by element: silu, mul, add, pow, rsqrt, ..."};

namespace {

const Operator kSilu{"silu", ""}, kRsqrt{"rsqrt", ""}, kNeg{"neg", ""},
    kAddScalar{"add_scalar", ""}, kScale{"scale", ""}, kSquare{"pow", ""}, kAdd{"add", ""},
    kMul{"mul", ""}, kTrig{"trig", ""}, kMaximum{"maximum", ""};

enum class Keep : std::uint8_t { nothing, input, output };

// y = f(x) of one type; its backward makes one new tensor.
Var unary(GraphBuilder& g, const Operator& op, Var x, Keep keep) {
  const TensorType t = x.type();
  Node n(g, op);
  const Var input = x;
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kElementwise, {t}, {t});
  if (keep == Keep::input) n.save(input);
  if (keep == Keep::output) n.save(y);
  if (n.needs(xi)) {
    if (keep == Keep::nothing) {
      n.launch_backward(compute::kElementwise, {t}, {t});
    } else {
      n.launch_backward(compute::kElementwise, {t, t}, {t});
    }
    n.produce(xi, t);
  }
  return y;
}

DType promote(DType a, DType b) {
  const auto order = [](DType d) { return d == DType::f32 ? 2 : d == DType::f64 ? 3 : 1; };
  return order(a) >= order(b) ? a : b;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out = a.rank >= b.rank ? a : b;
  const Shape& small = a.rank >= b.rank ? b : a;
  for (int i = 1; i <= small.rank; ++i)
    out[out.rank - i] = std::max(out[out.rank - i], small[small.rank - i]);
  return out;
}

// The gradient of a product or sum as an operand of `to` wants it: summed over broadcast dimensions
// and cast, each a new tensor; `temp` holds it until then. Autograd does so once the node has made
// all its gradients (engine.cpp, validate_outputs).
void reduce_and_hand_over(GraphBuilder& g, Node& n, int operand, TensorType from, TensorType to,
                          int temp) {
  TensorType now = from;
  if (from.shape.elements() != to.shape.elements()) {
    const TensorType summed{from.dtype, to.shape};
    const int next = n.allocate(summed);
    const std::int64_t columns = to.shape.elements();
    const bool over_rows = to.shape.rank > 0 && to.shape[-1] == from.shape[-1];
    const ReductionWorkspace w = over_rows ? row_sum_workspace(from.shape.elements() / columns,
                                                               columns, g.facts().multiprocessors)
                                           : ReductionWorkspace{};
    const bool split = w.partial_sums > Bytes{0};
    const int partial = split ? n.allocate({DType::u8, {w.partial_sums.count}}) : -1;
    const int semaphores = split ? n.allocate({DType::u8, {w.semaphores.count}}) : -1;
    n.launch_backward(compute::kReduction, {now}, {summed});
    if (split) {
      n.release(semaphores);
      n.release(partial);
    }
    n.release(temp);
    temp = next;
    now = summed;
  }
  if (now.dtype != to.dtype) {
    const int next = n.allocate(to);
    n.launch_backward(compute::kCopy, {now}, {to});
    n.release(temp);
    temp = next;
  }
  n.hand_over(operand, temp);
}

struct Factor {
  int operand;
  TensorType type;
};

// grad * self for `other` first, then grad * other for `self` (generated code goes by argument
// name), then both are brought to their factors' shapes.
void multiply_back(GraphBuilder& g, Node& n, const Factor& self, const Factor& other,
                   const TensorType& out) {
  int product[2] = {-1, -1};
  for (const int side : {1, 0}) {
    const Factor& factor = side == 0 ? self : other;
    if (!n.needs(factor.operand)) continue;
    product[side] = n.allocate(out);
    n.launch_backward(compute::kElementwise, {out, side == 0 ? other.type : self.type}, {out});
  }
  for (const int side : {0, 1}) {
    const Factor& factor = side == 0 ? self : other;
    if (product[side] >= 0)
      reduce_and_hand_over(g, n, factor.operand, out, factor.type, product[side]);
  }
}

}  // namespace

Var silu(GraphBuilder& g, Var x) { return unary(g, kSilu, std::move(x), Keep::input); }
Var neg(GraphBuilder& g, Var x) { return unary(g, kNeg, std::move(x), Keep::nothing); }
Var scale(GraphBuilder& g, Var x) { return unary(g, kScale, std::move(x), Keep::nothing); }
Var trig(GraphBuilder& g, Var x) { return unary(g, kTrig, std::move(x), Keep::nothing); }

Var add_scalar(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  Node n(g, kAddScalar);
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kElementwise, {t}, {t});
  if (n.needs(xi)) n.pass(xi);
  return y;
}

// rsqrt's derivative is -0.5 * grad * result^3: three kernels, two temporaries.
Var rsqrt(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  Node n(g, kRsqrt);
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kElementwise, {t}, {t});
  n.save(y);
  if (n.needs(xi)) {
    const int scaled = n.allocate(t);
    n.launch_backward(compute::kElementwise, {t}, {t});
    const int cube = n.allocate(t);
    n.launch_backward(compute::kElementwise, {t}, {t});
    n.launch_backward(compute::kElementwise, {t, t}, {t});
    n.produce(xi, t);
    n.release(cube);
    n.release(scaled);
  }
  return y;
}

// pow's derivative for exponent 2 is grad * (2 * x.pow(1)): a copy, its double, then the product;
// C++ keeps the temporaries to the end of the expression (FunctionsManual.cpp, pow_backward).
Var square(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  Node n(g, kSquare);
  const Var input = x;
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kElementwise, {t}, {t});
  n.save(input);
  if (n.needs(xi)) {
    const int copy = n.allocate(t);
    n.launch_backward(compute::kElementwise, {t}, {t});
    const int twice = n.allocate(t);
    n.launch_backward(compute::kElementwise, {t}, {t});
    n.produce(xi, t);
    n.launch_backward(compute::kElementwise, {t, t}, {t});
    n.release(twice);
    n.release(copy);
  }
  return y;
}

// maximum's derivative is where(x == m, grad / 2, grad).masked_fill_(x < m, 0).
Var clamp_scores(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  const TensorType mask{DType::b1, t.shape};
  Node n(g, kMaximum);
  const Var input = x;
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  n.launch(compute::kElementwise, {t}, {t});
  n.save(input);
  if (n.needs(xi)) {
    const int equal = n.allocate(mask);
    const int half = n.allocate(t);
    n.launch_backward(compute::kElementwise, {t}, {mask});
    n.launch_backward(compute::kElementwise, {t}, {t});
    n.launch_backward(compute::kElementwise, {mask, t, t}, {t});
    n.produce(xi, t);
    n.release(half);
    n.release(equal);
    const int less = n.allocate(mask);
    n.launch_backward(compute::kElementwise, {t}, {mask});
    n.launch_backward(compute::kElementwise, {mask, t}, {t});
    n.release(less);
  }
  return y;
}

Var add(GraphBuilder& g, Var a, Var b) {
  const TensorType ta = a.type(), tb = b.type();
  const TensorType out{promote(ta.dtype, tb.dtype), broadcast(ta.shape, tb.shape)};
  Node n(g, kAdd);
  const int ai = n.in(std::move(a));
  const int bi = n.in(std::move(b));
  Var y = n.out(out);
  n.launch(compute::kElementwise, {ta, tb}, {out});
  for (const auto& [operand, type] : {std::pair{ai, ta}, std::pair{bi, tb}}) {
    if (!n.needs(operand)) continue;
    if (type == out) {
      n.pass(operand);
    } else {
      n.launch_backward(type.shape == out.shape ? compute::kCopy : compute::kReduction, {out},
                        {type});
      n.produce(operand, type);
    }
  }
  return y;
}

Var add_in_place(GraphBuilder& g, Var a, Var b) {
  const TensorType ta = a.type(), tb = b.type();
  Node n(g, kAdd);
  const int ai = n.in(std::move(a));
  const int bi = n.in(std::move(b));
  Var y = n.view(ai, ta);
  n.launch(compute::kElementwise, {ta, tb}, {ta});
  if (n.needs(ai)) n.pass(ai);
  if (n.needs(bi)) {
    if (ta == tb) {
      n.pass(bi);
    } else {
      n.launch_backward(compute::kCopy, {ta}, {tb});
      n.produce(bi, tb);
    }
  }
  return y;
}

Var mul(GraphBuilder& g, Var a, Var b) {
  const TensorType ta = a.type(), tb = b.type();
  const TensorType out{promote(ta.dtype, tb.dtype), broadcast(ta.shape, tb.shape)};
  Node n(g, kMul);
  const Var kept_a = a, kept_b = b;
  const int ai = n.in(std::move(a));
  const int bi = n.in(std::move(b));
  Var y = n.out(out);
  n.launch(compute::kElementwise, {ta, tb}, {out});
  if (n.needs(bi)) n.save(kept_a);
  if (n.needs(ai)) n.save(kept_b);
  multiply_back(g, n, {ai, ta}, {bi, tb}, out);
  return y;
}

Var mul_weight(GraphBuilder& g, const Weight& w, Var x) {
  const TensorType tx = x.type();
  const TensorType out{promote(w.type.dtype, tx.dtype), tx.shape};
  Node n(g, kMul);
  const int wi = n.in(w);
  const Var kept = x;
  const int xi = n.in(std::move(x));
  Var y = n.out(out);
  n.launch(compute::kElementwise, {w.type, tx}, {out});
  if (n.needs(wi)) n.save(kept);
  multiply_back(g, n, {wi, w.type}, {xi, tx}, out);
  return y;
}

}  // namespace sim::plan
