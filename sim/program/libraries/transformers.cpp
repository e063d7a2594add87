#include <fmt/format.h>

#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"

namespace sim::program {

namespace {

// The transformers release of the month in which each torch release came out (release notes of
// both).
std::string_view beside(const Release& torch) {
  return by_release<std::string_view>({torch.major, torch.minor, torch.patch, {}},
                                      {{{1, 13, 0, {}}, "4.28.1"},
                                       {{2, 0, 0, {}}, "4.31.0"},
                                       {{2, 1, 0, {}}, "4.35.2"},
                                       {{2, 2, 0, {}}, "4.38.2"},
                                       {{2, 3, 0, {}}, "4.41.2"},
                                       {{2, 4, 0, {}}, "4.44.2"},
                                       {{2, 5, 0, {}}, "4.46.3"},
                                       {{2, 6, 0, {}}, "4.49.0"},
                                       {{2, 7, 0, {}}, "4.52.4"},
                                       {{2, 8, 0, {}}, "4.56.2"},
                                       {{2, 9, 0, {}}, "4.57.3"},
                                       {{2, 10, 0, {}}, "5.0.0"},
                                       {{2, 11, 0, {}}, "5.17.0"}});
}

}  // namespace

const Library kTransformers{"transformers", "Hugging Face models and Trainer", "5.17.0", beside};

namespace {
Release release_of(const Software& software) {
  const Release& r = software.of("transformers");
  return {r.major, r.minor, r.patch, {}};
}
}  // namespace

namespace {

// The release whose rotary embedding of this model family computes cosines and sines from the
// positions of the batch instead of keeping tables in every layer: modeling_llama.py with 4.38; the
// families that were copied from its older form kept theirs until 4.45 (pull request 31999).
Release rotary_tables_end(std::string_view architecture) {
  const bool llama = architecture == "LlamaForCausalLM" || architecture == "InternLMForCausalLM";
  return llama ? Release{4, 38, 0, {}} : Release{4, 45, 0, {}};
}

}  // namespace

void apply_modelling_code(const Software& software, std::string_view architecture,
                          plan::Implementations& f) {
  const Release r = release_of(software);
  using plan::LossKind;
  // modeling_llama.py, by the release that changed each line.
  f.mlp_down_before_up = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.norm_multiplies_input = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.attention_clamps_scores =
      by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.rotary_cache_per_layer = r < rotary_tables_end(architecture);
  // _set_cos_sin_cache(dtype=torch.get_default_dtype()): with the rope scaling of 4.31.
  f.rotary_cache_in_weight_type = r >= Release{4, 31, 0, {}};
  f.rotary_from_positions = by_release<bool>(r, {{{4, 28, 0, {}}, false}, {{4, 45, 0, {}}, true}});
  f.inv_freq_persistent = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 32, 0, {}}, false}});
  // loss/loss_utils.py, ForCausalLMLoss, is called by the models from 4.46 on.
  f.loss_function_upcasts = by_release<bool>(r, {{{4, 28, 0, {}}, false}, {{4, 46, 0, {}}, true}});
  // integrations/sdpa_attention.py, use_gqa_in_sdpa: without a mask, key heads are not repeated.
  f.sdpa_groups_heads = by_release<bool>(r, {{{4, 28, 0, {}}, false}, {{4, 53, 0, {}}, true}});
  f.loss = by_release<LossKind>(r, {{{4, 28, 0, {}}, LossKind::shift_then_upcast},
                                    {{4, 31, 0, {}}, LossKind::upcast_then_shift},
                                    {{4, 50, 0, {}}, LossKind::upcast_then_pad}});
}

namespace {

// The release that brought the class (release notes); none: its code comes with the model.
std::optional<Release> first_release_with(std::string_view architecture) {
  if (architecture == "LlamaForCausalLM") return parse_release("4.28.0");
  if (architecture == "MistralForCausalLM") return parse_release("4.34.0");
  if (architecture == "Qwen2ForCausalLM") return parse_release("4.37.0");
  return std::nullopt;
}

}  // namespace

void date_architecture(const Scenario& scenario, Software& software, Assumptions& assumptions) {
  const std::string& architecture = scenario.model.architecture.name;
  const std::optional<Release> first = first_release_with(architecture);
  if (!first || software.of("transformers") >= *first) return;
  if (scenario.software.releases.contains("transformers")) {
    assumptions.add("software.transformers", software.of("transformers").text,
                    fmt::format("{} came with {}: a fork is assumed that runs it alike",
                                architecture, first->text));
    return;
  }
  software.releases["transformers"] = *first;
  assumptions.add("software.transformers", first->text,
                  fmt::format("the first release with {}", architecture));
}

// modeling_utils.py. safetensors is a requirement since 4.30 and preferred from then on; mapped
// tensors are assigned since 4.43 (pull request 31771); save_pretrained's max_shard_size was 10 GB
// until 4.36 and is 5 GB since; 5.0 dropped the path that builds the model in memory first
// (low_cpu_mem_usage without effect).
LoadingFacts loading_facts(const Scenario& scenario, const Software& software) {
  const Release r = release_of(software);
  LoadingFacts f;
  f.safetensors = r >= Release{4, 30, 0, {}};
  f.assigns_mapped = r >= Release{4, 43, 0, {}};
  f.always_low_memory = r >= Release{5, 0, 0, {}};
  // Quantised models: their own setter for every tensor until 4.37; since 4.38 (quantizers/) for
  // those of packed layers alone.
  f.places_unpacked = r >= Release{4, 38, 0, {}};
  f.shard = r < Release{4, 36, 0, {}} ? 10_GB : 5_GB;
  const LoadingSpec& asked = scenario.job.loading;
  if (asked.format) f.safetensors = *asked.format == LoadingSpec::Format::safetensors;
  if (asked.shard_size) f.shard = *asked.shard_size;
  f.low_memory_default = asked.low_cpu_mem_usage.value_or(f.always_low_memory);
  return f;
}

// modeling_utils.py: quantised models go around zero.Init, and their packed data back to the host,
// since 4.39 (pull request 29587); before, ZeRO-3 and low_cpu_mem_usage excluded each other.
bool packs_sharded_models(const Software& software) {
  return release_of(software) >= Release{4, 39, 0, {}};
}

// SDPA became the default attention where it is supported with 4.36 (release notes).
bool sdpa_is_default(const Software& software) {
  return release_of(software) >= Release{4, 36, 0, {}};
}

// trainer.py up to 4.30 passes limit_all_gathers = False unless fsdp_config says otherwise;
// from 4.31 on accelerate's FullyShardedDataParallelPlugin does, whose default became True in late
// 2023.
bool trainer_limits_all_gathers(const Software& software) {
  return release_of(software) >= Release{4, 36, 0, {}};
}

}  // namespace sim::program
