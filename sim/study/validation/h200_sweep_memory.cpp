// Two or four decoder layers of six shapes of Llama on one H200 (torch 2.11, transformers 5.17),
// over batch, length, attention, checkpointing and precision: memory of a steady step.
#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "sim/study/validation/validation_set.h"

namespace sim::study {

namespace {

struct Shape {
  std::string_view name;
  std::int64_t hidden, intermediate, heads, kv_heads, vocab;
};
constexpr Shape kShapes[] = {
    {"7b", 4096, 11008, 32, 32, 32000},      {"13b", 5120, 13824, 40, 40, 32000},
    {"34b", 8192, 22016, 64, 8, 32000},      {"70b", 8192, 28672, 64, 8, 32000},
    {"qwen72b", 8192, 29568, 64, 8, 152064}, {"qwen7b", 3584, 18944, 28, 4, 152064}};

constexpr std::string_view kSettings[] = {"arch",      "layers",        "batch", "seq",
                                          "attention", "checkpointing", "mode"};

std::optional<std::int64_t> count(const CsvRow& row, std::string_view column) {
  const std::optional<double> number = row.number(column);
  constexpr double kMost = 1e9;
  if (!number || *number < 1 || *number > kMost) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

RowQuestion question(const CsvRow& row) {
  const auto* shape = std::ranges::find(kShapes, row.text("arch"), &Shape::name);
  if (shape == std::end(kShapes)) return BadRow{"arch is none of this set's shapes"};
  const auto layers = count(row, "layers"), batch = count(row, "batch"), seq = count(row, "seq");
  if (!layers || !batch || !seq) return BadRow{"layers, batch and seq must be whole numbers"};
  const std::string_view attention = row.text("attention"), mode = row.text("mode");
  const std::string_view checkpointing = row.text("checkpointing");
  if (attention != "sdpa" && attention != "eager") return BadRow{"attention: sdpa or eager"};
  if (mode != "bf16" && mode != "autocast") return BadRow{"mode: bf16 or autocast"};
  if (checkpointing != "True" && checkpointing != "False") {
    return BadRow{"checkpointing: True or False"};
  }
  // The script writes this word where the first figure would stand.
  if (row.text("params") == "oom") return SkippedRow{"the measured run ran out of memory"};
  const std::string config = fmt::format(
      R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
 "hidden_size": {}, "intermediate_size": {}, "num_attention_heads": {}, "num_key_value_heads": {},
 "vocab_size": {}, "num_hidden_layers": {}, "max_position_embeddings": 32768,
 "tie_word_embeddings": false, "use_cache": false, "rms_norm_eps": 1e-06}}
)",
      shape->hidden, shape->intermediate, shape->heads, shape->kv_heads, shape->vocab, *layers);
  const std::string scenario = fmt::format(
      R"(model: llama-2-7b-hf
cluster: {{node: hgx-h200, nodes: 1, processes_per_node: 1}}
software: {{torch: 2.11.0, transformers: 5.17.0}}
job:
  trainer: pytorch
  weights: random
  precision: {}
  micro_batch_size: {}
  sequence_length: {}
  steps: 3
  activation_checkpointing: {}
  attention: {}
  optimizer: adamw
)",
      mode == "bf16" ? "{weights: bf16}" : "{weights: fp32, autocast: bf16}", *batch, *seq,
      checkpointing == "True" ? "full\n  checkpoint_reentrant: false" : "none", attention);
  return RowScenario{scenario, config};
}

Bytes of_class(const report::PhaseSummary& phase, MemoryClass memory_class) {
  return phase.peak_by_class[static_cast<std::size_t>(memory_class)];
}

// The table's figures are those of the eighth step, by parts of it; the report has parts for the
// first alone. They differ by what the first step makes and later ones find: the optimizer's
// states, and workspaces of matrix products, which live on (the backward's by its own thread).
std::optional<Bytes> after_forward(const report::RankSummary& rank) {
  const auto* forward = find_phase(rank, "step0.forward");
  const auto* step = find_phase(rank, "step");
  if (!forward || !step) return std::nullopt;
  return forward->end_allocated + of_class(*step, MemoryClass::optimizer_states) +
         of_class(*step, MemoryClass::workspace) - of_class(*forward, MemoryClass::workspace);
}

std::optional<Bytes> peak_forward_backward(const report::RankSummary& rank) {
  const auto* forward = find_phase(rank, "step0.forward");
  const auto* backward = find_phase(rank, "step0.backward");
  const auto* step = find_phase(rank, "step");
  if (!forward || !backward || !step) return std::nullopt;
  const Bytes workspaces = of_class(*step, MemoryClass::workspace);
  const auto steady = [&](const report::PhaseSummary& part) {
    return part.peak_allocated + workspaces - of_class(part, MemoryClass::workspace);
  };
  return std::max(steady(*forward), steady(*backward)) +
         of_class(*step, MemoryClass::optimizer_states);
}

constexpr ValidatedColumn kFigures[] = {{"after_forward", after_forward},
                                        {"peak_forward_backward", peak_forward_backward}};

}  // namespace

const ValidationSet kH200SweepMemory{
    "h200_sweep_memory", "decoder layers of six Llama shapes on one H200: memory of a steady step",
    kSettings, kFigures, question};

}  // namespace sim::study
