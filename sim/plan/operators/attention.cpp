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

namespace {

struct Sdpa {
  TensorType q, k, v, row_q, row_k, lse;
  std::int64_t b, heads, s, d;
};
Sdpa sdpa_types(const Var& q, const Var& k, const Var& v) {
  Sdpa t{q.type(), k.type(), v.type(), {}, {}, {}, 0, 0, 0, 0};
  t.b = t.q.shape[0];
  t.heads = t.q.shape[1];
  t.s = t.q.shape[2];
  t.d = t.q.shape[3];
  t.row_q = {t.q.dtype, {t.b, t.s, t.heads, t.d}};
  t.row_k = {t.k.dtype, {t.b, t.k.shape[2], t.k.shape[1], t.d}};
  t.lse = {DType::f32, {t.b, t.heads, t.s}};
  return t;
}

void save_all(Node& n, std::initializer_list<const Var*> values) {
  for (const Var* value : values) n.save(*value);
}

}  // namespace

// The output is laid out [b, s, heads, d], so the transpose and reshape after it are views.
Var sdpa_flash(GraphBuilder& g, Var q, Var k, Var v) {
  const Sdpa t = sdpa_types(q, k, v);
  Node n(g, kAttention);
  const Var kq = q, kk = k, kv = v;
  const int qi = n.in(std::move(q));
  const int ki = n.in(std::move(k));
  const int vi = n.in(std::move(v));
  Var y = n.out(t.q);
  Var l = n.out(t.lse);
  Var rng = n.out({DType::i64, {2}});
  n.launch(compute::kFlashAttentionForward, {t.row_q, t.row_k, t.row_k}, {t.row_q});
  save_all(n, {&kq, &kk, &kv, &y, &l, &rng});
  if (n.needs_any()) {
    const FlashWorkspace w = flash_workspace(t.b, t.s, t.heads, t.d);
    n.produce(qi, t.q);
    n.produce(ki, t.k);
    n.produce(vi, t.v);
    const int accum = n.allocate(w.dq_accum);
    const int sum = n.allocate(w.softmax_d);
    n.launch_backward(compute::kFlashAttentionBackward,
                      {t.row_q, t.row_q, t.row_k, t.row_k, t.row_q, t.lse},
                      {t.row_q, t.row_k, t.row_k});
    n.release(sum);
    n.release(accum);
  }
  return y;
}

// aten/src/ATen/native/cudnn/MHA.cpp: seed, offset, output, statistics and a workspace of a few
// bytes; backward one workspace for the fp32 gradient of q and the row sums (recorded on an H200
// with torch 2.11: 67,633,408 bytes for 2 x 32 x 2048 x 128).
Var sdpa_cudnn(GraphBuilder& g, Var q, Var k, Var v) {
  const Sdpa t = sdpa_types(q, k, v);
  Node n(g, kAttention);
  const Var kq = q, kk = k, kv = v;
  const int qi = n.in(std::move(q));
  const int ki = n.in(std::move(k));
  const int vi = n.in(std::move(v));
  Var seed = n.out({DType::i64, {1}});
  Var offset = n.out({DType::i64, {1}});
  Var y = n.out(t.q);
  Var l = n.out(t.lse);
  n.temporary({DType::u8, {256}});
  n.launch(compute::kFlashAttentionForward, {t.row_q, t.row_k, t.row_k}, {t.row_q});
  save_all(n, {&kq, &kk, &kv, &l, &y, &seed, &offset});
  if (n.needs_any()) {
    n.produce(qi, t.q);
    n.produce(ki, t.k);
    n.produce(vi, t.v);
    const int workspace = n.allocate({DType::f32, {t.b * t.heads * t.s * (t.d + 1) + 64}});
    n.launch_backward(compute::kFlashAttentionBackward,
                      {t.row_q, t.row_q, t.row_k, t.row_k, t.row_q, t.lse},
                      {t.row_q, t.row_k, t.row_k});
    n.release(workspace);
  }
  return y;
}

// aten/src/ATen/native/transformers/cuda/attention_backward.cu: the statistics have rows of a
// multiple of 32; backward keeps the row sums and, where the heads are wider than 64, the gradient
// of q in fp32.
Var sdpa_efficient(GraphBuilder& g, Var q, Var k, Var v, std::optional<Var> mask) {
  const Sdpa t = sdpa_types(q, k, v);
  const TensorType lse{DType::f32, {t.b, t.heads, round_up_to(t.s, 32)}};
  Node n(g, kAttention);
  const Var kq = q, kk = k, kv = v;
  const int qi = n.in(std::move(q));
  const int ki = n.in(std::move(k));
  const int vi = n.in(std::move(v));
  if (mask) n.in(std::move(*mask));
  Var y = n.out(t.q);
  Var l = n.out(lse);
  Var seed = n.out({DType::i64, {1}});
  Var offset = n.out({DType::i64, {1}});
  n.launch(compute::kFlashAttentionForward, {t.row_q, t.row_k, t.row_k}, {t.row_q});
  save_all(n, {&kq, &kk, &kv, &y, &l, &seed, &offset});
  if (n.needs_any()) {
    n.produce(qi, t.q);
    n.produce(ki, t.k);
    n.produce(vi, t.v);
    const int sum = n.allocate(lse);
    const int accum = t.d > 64 ? n.allocate({DType::f32, t.row_q.shape}) : -1;
    n.launch_backward(compute::kFlashAttentionBackward,
                      {t.row_q, t.row_q, t.row_k, t.row_k, t.row_q, t.lse},
                      {t.row_q, t.row_k, t.row_k});
    if (accum >= 0) n.release(accum);
    n.release(sum);
  }
  return y;
}

}  // namespace sim::plan
