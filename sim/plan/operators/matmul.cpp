#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kMatmul{"matmul", "batched matrix product of two activations"};

Var matmul(GraphBuilder& g, Var a, Var b) {
  a = autocast(g, std::move(a));
  b = autocast(g, std::move(b));
  const TensorType ta = a.type(), tb = b.type();
  TensorType out = ta;
  out.shape[-1] = tb.shape[-1];
  const std::int64_t m = ta.shape[-2], k = ta.shape[-1], n_cols = tb.shape[-1];
  const std::int64_t batch = ta.shape.elements() / (m * k);
  const DType dt = ta.dtype;

  Node n(g, kMatmul);
  const Var kept_a = a, kept_b = b;
  const int ai = n.in(std::move(a));
  const int bi = n.in(std::move(b));
  Var y = n.out(out);
  n.workspace();
  n.launch(compute::kBatchedGemm, {{dt, {batch, m, k}}, {dt, {batch, n_cols, k}}},
           {{dt, {batch, m, n_cols}}});
  if (n.needs(bi)) n.save(kept_a);
  if (n.needs(ai)) n.save(kept_b);
  if (n.needs(bi)) {
    n.launch_backward(compute::kBatchedGemm, {{dt, {batch, k, m}}, {dt, {batch, n_cols, m}}},
                      {{dt, {batch, k, n_cols}}});
    n.produce(bi, tb);
  }
  if (n.needs(ai)) {
    n.launch_backward(compute::kBatchedGemm, {{dt, {batch, m, n_cols}}, {dt, {batch, k, n_cols}}},
                      {{dt, {batch, m, k}}});
    n.produce(ai, ta);
  }
  return y;
}

Var rotary_angles(GraphBuilder& g, BufferId inv_freq, Var positions, std::int64_t d) {
  const Shape ids = positions.shape();
  const TensorType out{DType::f32, {ids[0], d, ids[1]}};
  Node n(g, kMatmul);
  n.in(inv_freq);
  n.in(std::move(positions));
  Var y = n.out(out);
  n.workspace();
  n.launch(compute::kBatchedGemm, {{DType::f32, {ids[0], d, 1}}, {DType::f32, {ids[0], ids[1], 1}}},
           {out});
  return y;
}

}  // namespace sim::plan
