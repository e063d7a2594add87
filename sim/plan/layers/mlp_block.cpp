#include "sim/plan/layers/layers.h"

namespace sim::plan {

Var gated_mlp(GraphBuilder& g, const Var& x, const GatedMlp& m) {
  auto scope = g.scope(m.path);
  Var gate = linear(g, x, m.gate);
  Var activated = silu(g, std::move(gate));
  Var up = linear(g, x, m.up);
  Var product = mul(g, std::move(activated), std::move(up));
  return linear(g, std::move(product), m.down);
}

}  // namespace sim::plan
