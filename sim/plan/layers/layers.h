// Modules composed of operators, in the order of the Hugging Face sources, so that a local variable
// lives as long here as it does there. Facts of releases come as Implementations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

// --- linear.cpp: a linear layer as the script made it: plain or packed, with adapters beside it or
// not
struct Linear {
  std::string path;
  Weight weight;               // [out, in]
  std::optional<Weight> bias;  // [out]
  bool packed = false;
  struct Adapter {
    Weight a, b;  // [rank, in], [out, rank]
  };
  std::optional<Adapter> adapter;
};
enum class LinearRole : std::uint8_t { inner, head };  // a head is never packed
Linear linear_module(GraphBuilder& g, const std::string& path, std::int64_t out, std::int64_t in,
                     bool bias = false, LinearRole role = LinearRole::inner);
Var linear(GraphBuilder& g, Var x, const Linear& module);
// Complains of each target of the adapters that no linear layer answers to. (PEFT's own complaint
// comes only when none of the targets is found.)
void check_targets(const LowRankAdapters& adapters, const std::vector<std::string>& linear_modules,
                   Diagnostics& diagnostics);

// --- rms_norm.cpp: LlamaRMSNorm
struct RmsNorm {
  std::string path;
  Weight weight;  // [hidden]
};
RmsNorm rms_norm_module(GraphBuilder& g, const std::string& path, std::int64_t hidden);
Var rms_norm(GraphBuilder& g, Var x, const RmsNorm& module);

// --- rotary.cpp: rotary position embedding on [b, heads, s, d]
struct Rotary {
  std::int64_t head_dim = 0;
  BufferId cos, sin;  // per-layer tables, where the release keeps them
  BufferId inv_freq;
};
Rotary rotary_module(GraphBuilder& g, const std::string& path, std::int64_t head_dim,
                     std::int64_t positions);
struct RotaryValues {
  Var cos, sin;  // [b, s, d]
};
RotaryValues rotary_values(GraphBuilder& g, const Rotary& module, const Var& position_ids,
                           DType dtype);
Var apply_rotary(GraphBuilder& g, const Var& x, const RotaryValues& values);

// --- attention_block.cpp: q, k, v projections, rotary, attention, output projection
struct Attention {
  std::string path;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::optional<Linear> q, k, v;  // separate projections, or
  std::optional<Linear> qkv;      // one packed product [(heads + 2 kv) * d, hidden]
  Linear out;
  Rotary rotary;
};
struct AttentionInputs {
  const Var* position_ids = nullptr;
  const Var* mask = nullptr;             // [b, 1, s, s] or null
  const RotaryValues* rotary = nullptr;  // where the model computes them once
};
// `x` stays alive in the caller's frame for the whole call.
Var attention_block(GraphBuilder& g, const Var& x, const Attention& module,
                    const AttentionInputs& inputs);

// --- mlp_block.cpp: down(silu(gate(x)) * up(x))
struct GatedMlp {
  std::string path;
  Linear gate, up, down;
};
Var gated_mlp(GraphBuilder& g, const Var& x, const GatedMlp& module);

// --- language_model_loss.cpp: shifted cross-entropy over the vocabulary, by release
struct LossResult {
  Var loss, logits;  // the model returns both
};
// A loss that nobody uses leaves no graph behind.
LossResult language_model_loss(GraphBuilder& g, Var logits, const Var& labels, bool used = true);

// --- preference_loss.cpp: DPO on the logits of policy and reference over chosen and rejected
// sequences
Var preference_loss(GraphBuilder& g, Var policy, Var reference, const Var& labels);

}  // namespace sim::plan
