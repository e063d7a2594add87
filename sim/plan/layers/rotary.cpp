#include "sim/plan/layers/layers.h"

namespace sim::plan {

Rotary rotary_module(GraphBuilder& g, const std::string& path, std::int64_t head_dim,
                     std::int64_t positions) {
  Rotary module;
  module.head_dim = head_dim;
  module.inv_freq =
      g.buffer(path, "inv_freq", {DType::f32, {head_dim / 2}}, g.facts().inv_freq_persistent);
  if (g.facts().rotary_cache_per_layer) {
    const DType type = g.facts().rotary_cache_in_weight_type ? g.weights() : DType::f32;
    module.cos = g.buffer(path, "cos_cached", {type, {1, 1, positions, head_dim}}, false);
    module.sin = g.buffer(path, "sin_cached", {type, {1, 1, positions, head_dim}}, false);
  }
  return module;
}

// Tables: cos[position_ids] and sin[position_ids]. Without tables: the angles are an outer product
// in fp32, doubled by cat, then cos, sin, their scaling and two casts (LlamaRotaryEmbedding).
RotaryValues rotary_values(GraphBuilder& g, const Rotary& module, const Var& position_ids,
                           DType dtype) {
  const Shape ids = position_ids.shape();
  const Shape full{ids[0], ids[1], module.head_dim};
  if (module.cos.valid()) {
    Var cos = gather_rows(g, module.cos, position_ids, {dtype, full});
    Var sin = gather_rows(g, module.sin, position_ids, {dtype, full});
    return {std::move(cos), std::move(sin)};
  }
  // A Python frame drops its variables in order, C++ the last first: hence declared backwards.
  Var sin, cos, angles, half, positions;
  positions = cast(g, position_ids, DType::f32);
  half = rotary_angles(g, module.inv_freq, positions, module.head_dim / 2);
  half = view(g, std::move(half), {ids[0], ids[1], module.head_dim / 2});
  angles = cat(g, half, half, full);
  cos = scale(g, trig(g, angles));  // times attention_scaling
  sin = scale(g, trig(g, angles));
  Var low_cos = cast(g, cos, dtype);
  Var low_sin = cast(g, sin, dtype);
  return {std::move(low_cos), std::move(low_sin)};
}

Var apply_rotary(GraphBuilder& g, const Var& x, const RotaryValues& values) {
  const Shape s = x.shape();
  const Shape half{s[0], s[1], s[2], s[3] / 2};
  const Shape row{s[0], 1, s[2], s[3]};
  Var direct = mul(g, x, view(g, values.cos, row));
  Var rotated;
  {
    Var first = slice(g, x, half);
    Var second = slice(g, x, half);
    Var minus = neg(g, second);
    rotated = cat(g, std::move(minus), first, s);
  }
  Var turned = mul(g, std::move(rotated), view(g, values.sin, row));
  return add(g, std::move(direct), std::move(turned));
}

}  // namespace sim::plan
