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

void apply_modelling_code(const Software& software, plan::Implementations& f) {
  const Release r = release_of(software);
  using plan::LossKind;
  // modeling_llama.py, by the release that changed each line.
  f.mlp_down_before_up = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.norm_multiplies_input = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.attention_clamps_scores =
      by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 31, 0, {}}, false}});
  f.rotary_cache_per_layer = by_release<bool>(r, {{{4, 28, 0, {}}, true}, {{4, 38, 0, {}}, false}});
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
