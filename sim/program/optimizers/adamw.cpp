// torch.optim.AdamW (torch/optim/adamw.py): exp_avg and exp_avg_sq in the parameter's dtype. The
// step counts are scalars on the host unless capturable or fused.
#include "sim/compute/kernels/kinds.h"
#include "sim/program/optimizers/optimizer.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

struct Options {
  std::optional<bool> foreach;
  bool fused = false;
};

Options read(const ConfigNode& node, Diagnostics& diagnostics) {
  Options o;
  if (!node.is_map()) return o;
  ReadContext context{diagnostics};
  ConfigReader reader(node, "job.optimizer.adamw", context);
  if (const auto foreach = reader.find<bool>("foreach")) o.foreach = foreach->value;
  if (const auto fused = reader.find<bool>("fused")) o.fused = fused->value;
  // torch.optim.AdamW raises: fused and foreach cannot be True together.
  if (const ConfigNode* fused = reader.find_node("fused"); o.fused && o.foreach.value_or(false)) {
    diagnostics.error(fused->at, "fused and foreach cannot both be true", "keep one of them");
  }
  reader.finish();
  return o;
}

bool check(const ConfigNode& node, Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  read(node, diagnostics);
  return diagnostics.error_count() == errors;
}

TensorType type_of(const ParameterState& p) { return {p.dtype, {p.elements}}; }

// All parameters' states first, then the updates: _init_group runs over the whole group.
void make_states(Builder& b, std::vector<ParameterState>& state) {
  for (ParameterState& p : state) {
    if (!p.gradient.valid() || !p.optimizer.empty()) continue;
    b.set_scope(p.scope);
    for (const char* name : {"exp_avg", "exp_avg_sq"}) {
      p.optimizer.push_back(
          b.allocate(type_of(p).bytes(), {MemoryClass::optimizer_states, p.scope, b.label(name)}));
      b.launch({&compute::kFill, {}, {type_of(p)}});
    }
  }
}

// One tensor after the other: sqrt of exp_avg_sq and its quotient are two temporaries.
void single_tensor(Builder& b, const std::vector<ParameterState>& state) {
  for (const ParameterState& p : state) {
    if (!p.gradient.valid()) continue;
    const TensorType t = type_of(p);
    const Purpose temporary{MemoryClass::temporaries, p.scope, b.label("AdamW denominator")};
    b.set_scope(p.scope);
    b.launch({&compute::kOptimizer, {t, t, t, t}, {t, t, t}});
    const TensorId root = b.allocate(t.bytes(), temporary);
    b.launch({&compute::kElementwise, {t}, {t}});
    const TensorId quotient = b.allocate(t.bytes(), temporary);
    b.launch({&compute::kElementwise, {t}, {t}});
    b.release(root);
    b.release(quotient);
  }
}

// Lists: one (or two, by release) whole sets of temporaries at once.
void multi_tensor(Builder& b, const std::vector<ParameterState>& state, int sets) {
  std::vector<TensorId> temporaries;
  for (int set = 0; set < sets; ++set) {
    for (const ParameterState& p : state) {
      if (!p.gradient.valid()) continue;
      temporaries.push_back(b.allocate(
          type_of(p).bytes(), {MemoryClass::temporaries, p.scope, b.label("AdamW denominator")}));
    }
  }
  for (const ParameterState& p : state) {
    if (!p.gradient.valid()) continue;
    const TensorType t = type_of(p);
    b.set_scope(p.scope);
    b.launch({&compute::kOptimizer, {t, t, t, t}, {t, t, t}});
  }
  // A Python list drops its last entry first.
  for (auto t = temporaries.rbegin(); t != temporaries.rend(); ++t) b.release(*t);
}

void step(Session& session, std::vector<ParameterState>& state) {
  Builder& b = session.builder;
  Diagnostics ignored;  // check() has filed them
  const Options o = read(session.scenario.job.optimizer_options, ignored);
  make_states(b, state);
  if (o.fused) {
    multi_tensor(b, state, 0);
    return;
  }
  const bool flat = !state.empty() && state.front().flat;
  const bool natural =
      session.torch.foreach_by_default && (!flat || session.torch.foreach_on_flat_parameters);
  if (o.foreach.value_or(natural)) {
    multi_tensor(b, state, session.torch.foreach_temporary_sets);
  } else {
    single_tensor(b, state);
  }
}

}  // namespace

extern const Optimizer kAdamw;
const Optimizer kAdamw{"adamw", "torch.optim.AdamW: two states a parameter", check, step};

}  // namespace sim::program
