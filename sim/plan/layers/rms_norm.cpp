#include "sim/plan/layers/layers.h"

namespace sim::plan {

RmsNorm rms_norm_module(GraphBuilder& g, const std::string& path, std::int64_t hidden) {
  return {path, g.parameter(path, "weight", {hidden})};
}

// transformers modeling_llama.py LlamaRMSNorm.forward: from 4.31 on the input is rebound to its
// fp32 copy, which the power and the product both keep; before, the copy served the power alone and
// the product read (and kept) the input itself.
Var rms_norm(GraphBuilder& g, Var x, const RmsNorm& module) {
  auto scope = g.scope(module.path);
  const DType in = x.dtype();
  if (g.facts().norm_multiplies_input) {
    Var variance = mean_last(g, square(g, cast(g, x, DType::f32)));
    Var y = mul(g, std::move(x), rsqrt(g, add_scalar(g, variance)));
    if (module.weight.type.dtype != DType::f32) y = cast(g, std::move(y), module.weight.type.dtype);
    return mul_weight(g, module.weight, std::move(y));
  }
  Var variance;  // declared first: a Python frame drops its variables in order, C++ the last first
  Var h = cast(g, std::move(x), DType::f32);
  variance = mean_last(g, square(g, h));
  h = mul(g, std::move(h), rsqrt(g, add_scalar(g, variance)));
  return mul_weight(g, module.weight, cast(g, h, in));  // the local h lives on to the return
}

}  // namespace sim::plan
