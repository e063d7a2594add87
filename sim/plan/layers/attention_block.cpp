#include "sim/plan/layers/layers.h"

namespace sim::plan {

namespace {

struct Heads {
  Var q, k, v;  // [b, heads, s, d] views of the projections
};

Heads project(GraphBuilder& g, const Var& x, const Attention& m) {
  const std::int64_t b = x.shape()[0], s = x.shape()[1], d = m.head_dim;
  const Shape shape_q{b, m.heads, s, d}, shape_kv{b, m.kv_heads, s, d};
  Heads h;
  if (m.qkv) {
    Var packed;
    {
      auto scope = g.scope(m.path + ".qkv");
      packed = linear(g, x, *m.qkv);
    }
    // Slices of the packed product; their backward writes one packed gradient each.
    h.q = slice(g, packed, shape_q);
    h.k = slice(g, packed, shape_kv);
    h.v = slice(g, std::move(packed), shape_kv);
    return h;
  }
  const auto one = [&](const char* name, const Linear& w, const Shape& shape, bool rotated) {
    auto scope = g.scope(m.path + name);
    return split_heads(g, linear(g, x, w), shape, rotated);
  };
  h.q = one(".q_proj", *m.q, shape_q, true);
  h.k = one(".k_proj", *m.k, shape_kv, true);
  h.v = one(".v_proj", *m.v, shape_kv, false);
  return h;
}

Var eager(GraphBuilder& g, Heads h, const Attention& m, const Var* mask) {
  const Shape sq = h.q.shape();
  const std::int64_t b = sq[0], s = sq[2], d = m.head_dim;
  const Shape full{b, m.heads, s, d};
  h.k = repeat_heads(g, std::move(h.k), full);
  h.v = repeat_heads(g, std::move(h.v), full);
  const DType dtype = h.q.dtype();
  Var scores = matmul(g, h.q, view(g, h.k, {b, m.heads, d, s}));
  scores = scale(g, std::move(scores));
  if (mask != nullptr) scores = add(g, std::move(scores), *mask);
  if (g.facts().attention_clamps_scores) scores = clamp_scores(g, std::move(scores));
  Var weights = softmax(g, std::move(scores), DType::f32);
  weights = cast(g, std::move(weights), dtype);
  Var out = matmul(g, weights, h.v);
  out = contiguous(g, view(g, std::move(out), {b, s, m.heads, d}));
  return view(g, std::move(out), {b, s, m.heads * d});
}

// The LLaMA patch that stacks q, k and v: stack, flatten, unpad, packed kernel, pad
// (llama_flash_attn_monkey_patch.py; the collator always passes a padding mask, so the unpadding
// path runs).
Var flash_packed(GraphBuilder& g, Heads h, const Attention& m) {
  const std::int64_t b = h.q.shape()[0], s = h.q.shape()[2], d = m.head_dim;
  Var qkv = stack3(g, h.q, h.k, h.v, {b, m.heads, 3, s, d});
  qkv = view(g, std::move(qkv), {b, s, 3, m.heads, d});
  Var x = contiguous(g, qkv);
  Var unpadded = contiguous(g, x);
  Var out_unpadded = flash_attention_packed(g, std::move(unpadded), {b, s, m.heads, d});
  Var out = contiguous(g, out_unpadded);
  return view(g, std::move(out), {b, s, m.heads * d});
}

// The kernel knows 16 bits only; fp32 (upcast norms) is cast back first, to autocast's type or fp16
// (modeling_llama.py LlamaFlashAttention2.forward, "cast back to the correct dtype").
Var in_sixteen_bits(GraphBuilder& g, Var x) {
  if (x.dtype() != DType::f32) return x;
  return cast(g, std::move(x), g.facts().autocast.value_or(DType::f16));
}

Var flash_2(GraphBuilder& g, Heads h, const Attention& m) {
  const std::int64_t b = h.q.shape()[0], s = h.q.shape()[2], d = m.head_dim;
  h.q = in_sixteen_bits(g, std::move(h.q));
  h.k = in_sixteen_bits(g, std::move(h.k));
  h.v = in_sixteen_bits(g, std::move(h.v));
  h.q = view(g, std::move(h.q), {b, s, m.heads, d});
  h.k = view(g, std::move(h.k), {b, s, m.kv_heads, d});
  h.v = view(g, std::move(h.v), {b, s, m.kv_heads, d});
  Var out = flash_attention(g, h.q, h.k, h.v, {b, s, m.heads, d});
  return view(g, std::move(out), {b, s, m.heads * d});
}

// What SDPA's dispatcher takes (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp): cuDNN and
// flash want 16 bits and heads of at most 256, flash also no mask.
AttentionKind sdpa_kernel(const GraphBuilder& g, const Heads& h, const Var* mask) {
  const AttentionKind preferred = g.facts().attention;
  const std::int64_t d = h.q.shape()[3];
  const bool half = h.q.dtype() != DType::f32 && d % 8 == 0 && d <= 256;
  if (preferred == AttentionKind::sdpa_efficient || !half) return AttentionKind::sdpa_efficient;
  if (mask != nullptr) return AttentionKind::sdpa_efficient;
  return preferred;
}

Var scaled_dot_product(GraphBuilder& g, Heads h, const Attention& m, const Var* mask) {
  const std::int64_t b = h.q.shape()[0], s = h.q.shape()[2], d = m.head_dim;
  // scaled_dot_product_attention is on autocast's list of 16-bit operators.
  h.q = autocast(g, std::move(h.q));
  h.k = autocast(g, std::move(h.k));
  h.v = autocast(g, std::move(h.v));
  if (mask != nullptr || !g.facts().sdpa_groups_heads) {
    const Shape full{b, m.heads, s, d};
    h.k = repeat_heads(g, std::move(h.k), full);
    h.v = repeat_heads(g, std::move(h.v), full);
  }
  Var out;
  switch (sdpa_kernel(g, h, mask)) {
    case AttentionKind::sdpa_cudnn:
      out = sdpa_cudnn(g, h.q, h.k, h.v);
      break;
    case AttentionKind::sdpa_flash:
      out = sdpa_flash(g, h.q, h.k, h.v);
      break;
    default:
      out = sdpa_efficient(g, h.q, h.k, h.v,
                           mask != nullptr ? std::optional<Var>(*mask) : std::nullopt);
      break;
  }
  return view(g, std::move(out), {b, s, m.heads * d});
}

}  // namespace

Var attention_block(GraphBuilder& g, const Var& x, const Attention& m,
                    const AttentionInputs& inputs) {
  auto scope = g.scope(m.path);
  Heads h = project(g, x, m);
  {
    RotaryValues local;
    const RotaryValues* rotary = inputs.rotary;
    if (rotary == nullptr) {
      local = rotary_values(g, m.rotary, *inputs.position_ids, h.v.dtype());
      rotary = &local;
    }
    Var q = apply_rotary(g, h.q, *rotary);
    Var k = apply_rotary(g, h.k, *rotary);
    h.q = std::move(q);
    h.k = std::move(k);
  }
  Var out;
  switch (g.facts().attention) {
    case AttentionKind::eager:
    case AttentionKind::sdpa_math:
      out = eager(g, std::move(h), m, inputs.mask);
      break;
    case AttentionKind::flash_packed:
      out = flash_packed(g, std::move(h), m);
      break;
    case AttentionKind::flash_attention_2:
      out = flash_2(g, std::move(h), m);
      break;
    case AttentionKind::sdpa_cudnn:
    case AttentionKind::sdpa_flash:
    case AttentionKind::sdpa_efficient:
      out = scaled_dot_product(g, std::move(h), m, inputs.mask);
      break;
  }
  auto out_scope = g.scope(m.path + ".o_proj");
  return linear(g, out, m.out);
}

}  // namespace sim::plan
