// Llama layers of 7B shape on two H200 under FSDP, DDP and ZeroRedundancyOptimizer, one setting at
// a time (torch 2.11, transformers 5.17): allocated peaks of every phase. Settings run one after
// the other in one process, so a row's figures hold what earlier rows leaked; building the model
// shows how much.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "sim/study/validation/validation_set.h"

namespace sim::study {

namespace {

constexpr std::string_view kSettings[] = {
    "framework", "layers",  "batch",    "seq",      "weights", "mp",          "autocast", "ckpt",
    "accum",     "no_sync", "strategy", "prefetch", "limiter", "orig_params", "offload",  "reshard",
    "bucket_mb", "view",    "static",   "clip",     "opt",     "lora",        "save"};

std::optional<std::int64_t> count(const CsvRow& row, std::string_view column) {
  const std::optional<double> number = row.number(column);
  constexpr double kMost = 1e9;
  if (!number || *number < 0 || *number > kMost) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

std::optional<bool> flag(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.text(column);
  if (text == "True") return true;
  if (text == "False") return false;
  return std::nullopt;
}

// A word of the table and what a scenario writes for it.
struct Word {
  std::string_view cell, scenario;
};
template <std::size_t n>
const Word* find_word(const Word (&words)[n], const CsvRow& row, std::string_view column) {
  const auto* found = std::ranges::find(words, row.text(column), &Word::cell);
  return found == std::end(words) ? nullptr : found;
}

constexpr Word kMixed[] = {
    {"none", ""},
    {"bf16", ", mixed_precision: {param: bf16, reduce: bf16, buffer: bf16}"},
    {"bf16-reduce32", ", mixed_precision: {param: bf16, reduce: fp32, buffer: bf16}"}};
constexpr Word kShardings[] = {
    {"full", "full_shard"}, {"grad_op", "shard_grad_op"}, {"no_shard", "no_shard"}};
constexpr Word kPrefetches[] = {{"pre", "pre"}, {"post", "post"}, {"none", "none"}};
constexpr Word kOptimizers[] = {{"adamw-foreach", "adamw"},
                                {"adamw-loop", "{adamw: {foreach: false}}"},
                                {"adamw-fused", "{adamw: {fused: true}}"}};
constexpr Word kSaves[] = {{"none", ""},
                           {"full", "{state_dict: full, place: gpu, ranks: all}"},
                           {"full-offload", "{state_dict: full, place: cpu, ranks: rank0}"},
                           {"full-offload-rank0", "{state_dict: full, place: cpu, ranks: rank0}"},
                           {"sharded", "{state_dict: sharded, place: gpu, ranks: all}"},
                           {"sharded-offload", "{state_dict: sharded, place: cpu, ranks: all}"}};

const char* yes(bool value) { return value ? "true" : "false"; }

// Everything of a row that is a word of a closed set or a number.
struct Row {
  std::int64_t layers, batch, seq, accum, bucket_mb, lora;
  bool autocast, ckpt, no_sync, limiter, orig_params, offload, reshard, view, is_static, clip;
  const Word *mixed, *sharding, *prefetch, *optimizer, *save;
};

std::optional<Row> read(const CsvRow& row) {
  const auto layers = count(row, "layers"), batch = count(row, "batch"), seq = count(row, "seq"),
             accum = count(row, "accum"), bucket = count(row, "bucket_mb"),
             lora = count(row, "lora");
  const auto autocast = flag(row, "autocast"), ckpt = flag(row, "ckpt"),
             no_sync = flag(row, "no_sync"), limiter = flag(row, "limiter"),
             orig = flag(row, "orig_params"), offload = flag(row, "offload"),
             reshard = flag(row, "reshard"), view = flag(row, "view"),
             is_static = flag(row, "static"), clip = flag(row, "clip");
  for (const auto& number : {layers, batch, seq, accum, bucket, lora}) {
    if (!number) return std::nullopt;
  }
  for (const auto& truth :
       {autocast, ckpt, no_sync, limiter, orig, offload, reshard, view, is_static, clip}) {
    if (!truth) return std::nullopt;
  }
  Row r{*layers,
        *batch,
        *seq,
        *accum,
        *bucket,
        *lora,
        *autocast,
        *ckpt,
        *no_sync,
        *limiter,
        *orig,
        *offload,
        *reshard,
        *view,
        *is_static,
        *clip,
        find_word(kMixed, row, "mp"),
        find_word(kShardings, row, "strategy"),
        find_word(kPrefetches, row, "prefetch"),
        find_word(kOptimizers, row, "opt"),
        find_word(kSaves, row, "save")};
  const bool known = r.mixed != nullptr && r.sharding != nullptr && r.prefetch != nullptr &&
                     r.optimizer != nullptr && r.save != nullptr;
  return known ? std::optional(r) : std::nullopt;
}

std::string fsdp1(const Row& r) {
  return fmt::format(
      "{{fsdp: {{sharding: {}, wrap: LlamaDecoderLayer, backward_prefetch: {}, "
      "limit_all_gathers: {}, use_orig_params: {}, cpu_offload: {}{}}}}}",
      r.sharding->scenario, r.prefetch->scenario, yes(r.limiter), yes(r.orig_params),
      yes(r.offload), r.mixed->scenario);
}

std::string fsdp2(const Row& r) {
  return fmt::format(
      "{{fsdp2: {{wrap: LlamaDecoderLayer, reshard_after_forward: {}, cpu_offload: {}{}}}}}",
      yes(r.reshard), yes(r.offload), r.mixed->scenario);
}

std::string ddp(const Row& r, std::string_view name) {
  return fmt::format(
      "{{{}: {{bucket_cap: {} MiB, gradient_as_bucket_view: {}, static_graph: {}}}}}", name,
      r.bucket_mb, yes(r.view), yes(r.is_static));
}

// peft's own default makes adapters fp32; the script asks for that under DDP and ZeRO-1 only.
std::string lora(const CsvRow& row, const Row& r) {
  if (r.lora == 0) return "";
  const bool fp32 = row.text("framework") == "ddp" || row.text("weights") == "fp32";
  return fmt::format(
      "  lora: {{rank: {}, dropout: 0, dtype: {}, prepare: false, targets: [q_proj, k_proj, "
      "v_proj, "
      "o_proj, gate_proj, up_proj, down_proj]}}\n",
      r.lora, fp32 ? "fp32" : "bf16");
}

RowQuestion question(const CsvRow& row) {
  const std::optional<Row> r = read(row);
  if (!r || r->layers < 1 || r->batch < 1 || r->seq < 1 || r->accum < 1) {
    return BadRow{"a setting is no word or number that this set knows"};
  }
  const std::string_view weights = row.text("weights"), framework = row.text("framework");
  if (weights != "fp32" && weights != "bf16") return BadRow{"weights: fp32 or bf16"};
  std::string strategy;
  if (framework == "fsdp1") strategy = fsdp1(*r);
  if (framework == "fsdp2") strategy = fsdp2(*r);
  if (framework == "ddp") strategy = ddp(*r, "ddp");
  if (framework == "zero1") strategy = ddp(*r, "zero_redundancy_optimizer");
  if (strategy.empty()) return BadRow{"framework: fsdp1, fsdp2, ddp or zero1"};
  // The script writes this word where the first figure would stand.
  if (row.text("build_alloc_peak") == "error") return SkippedRow{"the measured run failed"};
  const std::string config = fmt::format(
      R"({{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
 "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
 "num_key_value_heads": 32, "vocab_size": 32000, "num_hidden_layers": {},
 "max_position_embeddings": 2048, "tie_word_embeddings": false, "use_cache": false,
 "rms_norm_eps": 1e-06}}
)",
      r->layers);
  const std::string scenario = fmt::format(
      R"(model: llama-2-7b-hf
cluster: {{node: hgx-h200, nodes: 1, processes_per_node: 2}}
software: {{torch: 2.11.0, transformers: 5.17.0, peft: 0.20.0}}
job:
  trainer: pytorch
  weights: random
  strategy: {}
  precision: {{weights: {}, autocast: {}}}
  micro_batch_size: {}
  sequence_length: {}
  gradient_accumulation_steps: {}
  no_sync: {}
  steps: 3
  activation_checkpointing: {}
  attention: sdpa
  optimizer: {}
{}{}{})",
      strategy, weights, r->autocast ? "bf16" : "none", r->batch, r->seq, r->accum, yes(r->no_sync),
      r->ckpt ? "full\n  checkpoint_reentrant: false" : "none", r->optimizer->scenario,
      r->clip ? "  max_grad_norm: 1.0\n" : "", lora(row, *r),
      r->save->scenario.empty() ? "" : fmt::format("  save: {}\n", r->save->scenario));
  return RowScenario{scenario, config};
}

Bytes of_class(const std::array<Bytes, kMemoryClasses>& classes, MemoryClass memory_class) {
  return classes[static_cast<std::size_t>(memory_class)];
}

constexpr std::string_view kPhases[] = {
    "load", "wrap", "step0.forward", "step0.backward", "step0.optimizer", "step", "save"};
enum Phase : std::uint8_t { build, wrap, forward0, backward0, optimizer0, step, save };

const report::PhaseSummary* find(const report::RankSummary& rank, Phase phase) {
  return find_phase(rank, kPhases[phase]);
}

template <Phase phase>
std::optional<Bytes> peak(const report::RankSummary& rank) {
  const auto* found = find(rank, phase);
  return found == nullptr ? std::nullopt : std::optional(found->peak_allocated);
}

// The first micro-batch alone.
template <Phase phase>
std::optional<Bytes> first_peak(const report::RankSummary& rank) {
  const auto* found = find(rank, phase);
  return found == nullptr ? std::nullopt : std::optional(found->first->peak_allocated);
}

// The other micro-batches of the first step, clipping, the optimizer.
std::optional<Bytes> rest_of_step0(const report::RankSummary& rank) {
  const auto *forward = find(rank, forward0), *backward = find(rank, backward0),
             *optimizer = find(rank, optimizer0);
  if (forward == nullptr || backward == nullptr || optimizer == nullptr) return std::nullopt;
  return std::max(
      {forward->later.peak_allocated, backward->later.peak_allocated, optimizer->peak_allocated});
}

// Before zero_grad: the gradients that backward left are still there.
std::optional<Bytes> before_zero_grad(const report::RankSummary& rank) {
  const auto *backward = find(rank, backward0), *optimizer = find(rank, optimizer0);
  if (backward == nullptr || optimizer == nullptr) return std::nullopt;
  return optimizer->end_allocated + of_class(backward->end_by_class, MemoryClass::gradients) -
         of_class(optimizer->end_by_class, MemoryClass::gradients);
}

// What stood beside the model once it was built. From the second row on the workspaces of matrix
// products are among it, which the simulated run makes for itself.
template <Phase phase>
Bytes left_behind(const report::RankSummary& rank, const CsvRow& row) {
  const auto *built = find(rank, build), *found = find(rank, phase);
  const auto end = row.number("build_alloc_end");
  if (built == nullptr || found == nullptr || !end) return {};
  const Bytes left = Bytes{static_cast<std::int64_t>(*end)} - built->end_allocated;
  constexpr Bytes kNothing = 1_MiB;  // the process group's own tensors
  if (left < kNothing) return left;
  return left - of_class(found->end_by_class, MemoryClass::workspace);
}

constexpr ValidatedColumn kFigures[] = {
    {"build_alloc_peak", peak<build>, left_behind<build>},
    {"wrap_alloc_peak", peak<wrap>, left_behind<wrap>},
    {"forward0_alloc_peak", first_peak<forward0>, left_behind<forward0>},
    {"backward0_alloc_peak", first_peak<backward0>, left_behind<backward0>},
    {"optimizer0_alloc_peak", rest_of_step0, left_behind<optimizer0>},
    {"end0_alloc_peak", before_zero_grad, left_behind<optimizer0>},
    {"step_alloc_peak", peak<step>, left_behind<step>},
    {"save_alloc_peak", peak<save>, left_behind<save>, true}};

}  // namespace

const ValidationSet kH200Sharding{
    "h200_sharding",
    "Llama layers on two H200 under FSDP, DDP and ZeRO-1: allocated peaks of phases",
    kSettings,
    kFigures,
    question,
    true};

}  // namespace sim::study
