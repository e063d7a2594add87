#include <algorithm>

#include "sim/plan/layers/layers.h"

namespace sim::plan {

namespace {

// PEFT: a target is a module's whole path or its end.
bool names(const Named& target, std::string_view path) {
  const std::string& end = target.name;
  return path == end || (path.ends_with(end) && path.size() > end.size() &&
                         path[path.size() - end.size() - 1] == '.');
}

// "All linear layers" spare the head (bitsandbytes' own modules are linear layers, too).
bool is_target(const LowRankAdapters& adapters, std::string_view path, LinearRole role) {
  if (adapters.all_linear) return role != LinearRole::head;
  return std::ranges::any_of(adapters.targets,
                             [&](const Named& target) { return names(target, path); });
}

}  // namespace

void check_targets(const LowRankAdapters& adapters, const std::vector<std::string>& linear_modules,
                   Diagnostics& diagnostics) {
  if (adapters.all_linear) return;
  std::vector<std::string> known;
  for (const std::string& path : linear_modules) {
    std::string last = path.substr(path.rfind('.') + 1);
    if (std::ranges::find(known, last) == known.end()) known.push_back(std::move(last));
  }
  for (const Named& target : adapters.targets) {
    const bool found = std::ranges::any_of(
        linear_modules, [&](const std::string& path) { return names(target, path); });
    if (!found) report_unknown_name("linear layer", target, known, diagnostics);
  }
}

Linear linear_module(GraphBuilder& g, const std::string& path, std::int64_t out, std::int64_t in,
                     bool bias, LinearRole role) {
  const Implementations& facts = g.facts();
  g.add_linear_module(path);
  const bool adapted = facts.adapters && is_target(*facts.adapters, path, role);
  Linear module;
  module.path = path;
  module.packed = facts.packed && role != LinearRole::head;
  const std::string base = adapted && facts.adapters->wraps_base ? path + ".base_layer" : path;
  module.weight = module.packed ? g.packed_parameter(base, "weight", {out, in})
                                : g.parameter(base, "weight", {out, in});
  if (bias) module.bias = g.parameter(base, "bias", {out});
  if (!adapted) return module;
  const std::int64_t rank = facts.adapters->rank;
  const Weight a = g.adapter_parameter(path + ".lora_A.default", "weight", {rank, in});
  const Weight b = g.adapter_parameter(path + ".lora_B.default", "weight", {out, rank});
  module.adapter = {a, b};
  return module;
}

namespace {

// tuners/lora: result += lora_B(lora_A(dropout(x))) * scaling; x is cast to the adapters' type
// except under autocast, which casts for itself; without dropout the module is an identity.
Var add_adapter(GraphBuilder& g, Var result, Var x, const Linear& module) {
  const LowRankAdapters& facts = *g.facts().adapters;
  if (module.packed && facts.clones_base_output) result = clone(g, std::move(result));
  const DType asked = result.dtype();
  if (!g.facts().autocast || !module.packed)
    x = cast(g, std::move(x), module.adapter->a.type.dtype);
  if (facts.dropout > 0) x = dropout(g, std::move(x));
  Var low;
  {
    auto scope = g.scope(module.path + ".lora_A.default");
    low = matrix_product(g, std::move(x), module.adapter->a, std::nullopt);
  }
  {
    auto scope = g.scope(module.path + ".lora_B.default");
    low = matrix_product(g, std::move(low), module.adapter->b, std::nullopt);
  }
  if (module.packed && !g.facts().autocast) low = cast(g, std::move(low), asked);
  low = scale(g, std::move(low));
  if (facts.adds_in_place) return add_in_place(g, std::move(result), std::move(low));
  Var sum = add(g, std::move(result), std::move(low));
  return cast(g, std::move(sum), asked);
}

}  // namespace

Var linear(GraphBuilder& g, Var x, const Linear& module) {
  if (!module.adapter || !g.adapters_enabled()) {
    return module.packed ? packed_product(g, std::move(x), module.weight, module.bias)
                         : matrix_product(g, std::move(x), module.weight, module.bias);
  }
  Var result = module.packed ? packed_product(g, x, module.weight, module.bias)
                             : matrix_product(g, x, module.weight, module.bias);
  return add_adapter(g, std::move(result), std::move(x), module);
}

}  // namespace sim::plan
