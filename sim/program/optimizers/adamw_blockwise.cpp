// AdamW with 8-bit states, with states in managed memory (paged), or both (bitsandbytes
// optim/optimizer.py and optim/adamw.py): one kernel a tensor, no temporaries.
#include "sim/compute/kernels/kinds.h"
#include "sim/program/optimizers/optimizer.h"

namespace sim::program {

namespace {

constexpr std::int64_t kSmallest8bit = 4096;  // min_8bit_size: smaller tensors keep fp32 states
constexpr std::int64_t kSmallestPaged =
    100'000;  // get_state_buffer: smaller ones are plain tensors

struct Flavour {
  bool eight_bits, paged;
};

// Managed pages give way to whatever the allocator asks of the driver, so they count for the host.
void add_state(Session& session, ParameterState& p, const TensorType& type, bool paged,
               const char* name) {
  Builder& b = session.builder;
  if (paged && p.elements >= kSmallestPaged) {
    p.paged.push_back(b.host_allocate(type.bytes(), HostMemoryKind::anonymous, p.scope,
                                      b.label("paged optimizer state")));
    return;
  }
  p.optimizer.push_back(
      b.allocate(type.bytes(), {MemoryClass::optimizer_states, p.scope, b.label(name)}));
  b.launch({&compute::kFill, {}, {type}});
}

void step_of(Session& session, std::vector<ParameterState>& state, Flavour flavour) {
  Builder& b = session.builder;
  for (ParameterState& p : state) {
    if (!p.gradient.valid()) continue;
    b.set_scope(p.scope);
    const bool small = flavour.eight_bits && p.elements >= kSmallest8bit;
    const TensorType moment{small ? DType::u8 : DType::f32, {p.elements}};
    if (p.optimizer.empty() && p.paged.empty()) {
      for (const char* name : {"exp_avg", "exp_avg_sq"}) {
        add_state(session, p, moment, flavour.paged, name);
      }
      const std::int64_t block = optimizer_block(session.software);
      const TensorType scales{DType::f32, {(p.elements + block - 1) / block}};
      for (int i = 0; small && i < 2; ++i) add_state(session, p, scales, false, "state scales");
    }
    const TensorType t{p.dtype, {p.elements}};
    b.launch({&compute::kOptimizer, {t, t, moment, moment}, {t, moment, moment}});
  }
}

bool check(const ConfigNode& node, Diagnostics& diagnostics) {
  if (!node.is_map() || node.entries.empty()) return true;
  diagnostics.error(node.entries.front().key_at, "this optimizer has no options");
  return false;
}

template <bool eight_bits, bool paged>
void step(Session& session, std::vector<ParameterState>& state) {
  step_of(session, state, {eight_bits, paged});
}

}  // namespace

extern const Optimizer kAdamw8bit, kPagedAdamw32bit, kPagedAdamw8bit;
const Optimizer kAdamw8bit{"adamw_8bit", "AdamW with states quantised by block", check,
                           step<true, false>};
const Optimizer kPagedAdamw32bit{"paged_adamw_32bit", "AdamW with fp32 states in managed memory",
                                 check, step<false, true>};
const Optimizer kPagedAdamw8bit{"paged_adamw_8bit", "AdamW with 8-bit states in managed memory",
                                check, step<true, true>};

}  // namespace sim::program
