#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kAttention{"attention", "fused attention kernels: FlashAttention-2, SDPA"};

namespace {

std::int64_t round_up_to(std::int64_t n, std::int64_t q) { return (n + q - 1) / q * q; }

// flash_attn's backward keeps dq in fp32 and one softmax sum a row, both with the sequence rounded
// up to 128 (Dao-AILab/flash-attention csrc/flash_attn/flash_api.cpp: seqlen_q_rounded,
// head_size_rounded).
struct FlashWorkspace {
  TensorType dq_accum, softmax_d;
};
FlashWorkspace flash_workspace(std::int64_t b, std::int64_t s, std::int64_t heads, std::int64_t d) {
  const std::int64_t rows = round_up_to(s, 128), width = round_up_to(d, 32);
  return {{DType::f32, {b, rows, heads, width}}, {DType::f32, {b, heads, rows}}};
}

}  // namespace

Var flash_attention(GraphBuilder& g, Var q, Var k, Var v, Shape out_shape) {
  const TensorType tq = q.type(), tk = k.type(), tv = v.type();
  const TensorType out{tq.dtype, out_shape};
  const std::int64_t b = tq.shape[0], s = tq.shape[1], heads = tq.shape[2], d = tq.shape[3];
  const TensorType lse{DType::f32, {b, heads, s}};

  Node n(g, kAttention);
  const Var kq = q, kk = k, kv = v;
  const int qi = n.in(std::move(q));
  const int ki = n.in(std::move(k));
  const int vi = n.in(std::move(v));
  Var y = n.out(out);
  Var l = n.out(lse);
  Var rng = n.out({DType::i64, {2}});
  n.launch(compute::kFlashAttentionForward, {tq, tk, tv}, {out});
  for (const Var* kept : {&kq, &kk, &kv, static_cast<const Var*>(&y), static_cast<const Var*>(&l),
                          static_cast<const Var*>(&rng)}) {
    n.save(*kept);
  }
  if (n.needs_any()) {
    const FlashWorkspace w = flash_workspace(b, s, heads, d);
    n.produce(qi, tq);
    n.produce(ki, tk);
    n.produce(vi, tv);
    const int sum = n.allocate(w.softmax_d);
    const int accum = n.allocate(w.dq_accum);
    n.launch_backward(compute::kFlashAttentionBackward, {out, tq, tk, tv, out, lse}, {tq, tk, tv});
    n.release(accum);
    n.release(sum);
  }
  return y;
}

// qkv [b, s, 3, heads, d]: the backward makes one packed gradient.
Var flash_attention_packed(GraphBuilder& g, Var qkv, Shape out_shape) {
  const TensorType packed = qkv.type();
  const std::int64_t b = packed.shape[0], s = packed.shape[1], heads = packed.shape[3],
                     d = packed.shape[4];
  const TensorType one{packed.dtype, {b, s, heads, d}};
  const TensorType out{packed.dtype, out_shape};
  const TensorType lse{DType::f32, {b, heads, s}};

  Node n(g, kAttention);
  const Var kept = qkv;
  const int qi = n.in(std::move(qkv));
  Var y = n.out(out);
  Var l = n.out(lse);
  Var rng = n.out({DType::i64, {2}});
  n.launch(compute::kFlashAttentionForward, {one, one, one}, {out});
  n.save(kept);
  n.save(y);
  n.save(l);
  n.save(rng);
  if (n.needs(qi)) {
    const FlashWorkspace w = flash_workspace(b, s, heads, d);
    n.produce(qi, packed);
    const int sum = n.allocate(w.softmax_d);
    const int accum = n.allocate(w.dq_accum);
    n.launch_backward(compute::kFlashAttentionBackward, {out, one, one, one, out, lse},
                      {one, one, one});
    n.release(accum);
    n.release(sum);
  }
  return y;
}

// Flash or memory-efficient SDPA on [b, heads, s, d]; the output is laid out [b, s, heads, d], so
// the transpose and reshape after it are views.
Var sdpa(GraphBuilder& g, Var q, Var k, Var v, std::optional<Var> mask) {
  const TensorType tq = q.type(), tk = k.type(), tv = v.type();
  const std::int64_t b = tq.shape[0], heads = tq.shape[1], s = tq.shape[2], d = tq.shape[3];
  const TensorType lse{DType::f32, {b, heads, s}};
  Node n(g, kAttention);
  const Var kq = q, kk = k, kv = v;
  const int qi = n.in(std::move(q));
  const int ki = n.in(std::move(k));
  const int vi = n.in(std::move(v));
  if (mask) n.in(std::move(*mask));
  Var y = n.out(tq);
  Var l = n.out(lse);
  Var rng = n.out({DType::i64, {2}});
  const TensorType row_q{tq.dtype, {b, s, heads, d}};
  const TensorType row_k{tk.dtype, {b, tk.shape[2], tk.shape[1], d}};
  n.launch(compute::kFlashAttentionForward, {row_q, row_k, row_k}, {row_q});
  for (const Var* kept : {&kq, &kk, &kv, static_cast<const Var*>(&y), static_cast<const Var*>(&l),
                          static_cast<const Var*>(&rng)}) {
    n.save(*kept);
  }
  if (n.needs_any()) {
    const FlashWorkspace w = flash_workspace(b, s, heads, d);
    n.produce(qi, tq);
    n.produce(ki, tk);
    n.produce(vi, tv);
    const int accum = n.allocate(w.dq_accum);
    const int sum = n.allocate(w.softmax_d);
    n.launch_backward(compute::kFlashAttentionBackward, {row_q, row_q, row_k, row_k, row_q, lse},
                      {row_q, row_k, row_k});
    n.release(sum);
    n.release(accum);
  }
  return y;
}

}  // namespace sim::plan
