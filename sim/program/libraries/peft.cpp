#include <fmt/format.h>

#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

std::string_view beside(const Release& torch) {
  return by_release<std::string_view>({torch.major, torch.minor, torch.patch, {}},
                                      {{{1, 13, 0, {}}, "0.2.0"},
                                       {{2, 0, 0, {}}, "0.4.0"},
                                       {{2, 1, 0, {}}, "0.6.2"},
                                       {{2, 2, 0, {}}, "0.9.0"},
                                       {{2, 3, 0, {}}, "0.11.1"},
                                       {{2, 4, 0, {}}, "0.12.0"},
                                       {{2, 5, 0, {}}, "0.13.2"},
                                       {{2, 6, 0, {}}, "0.14.0"},
                                       {{2, 7, 0, {}}, "0.15.2"},
                                       {{2, 8, 0, {}}, "0.17.1"},
                                       {{2, 9, 0, {}}, "0.18.0"},
                                       {{2, 10, 0, {}}, "0.18.1"},
                                       {{2, 11, 0, {}}, "0.19.1"}});
}

bool used_by(const JobSpec& job) { return job.lora.has_value(); }

constexpr Choice<DType> kTypes[] = {
    {"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}};
// No layer of a known model is as wide as this.
constexpr Limits<std::int64_t> kRank{1, 1 << 16};

// LoraConfig's own default names no targets: the mapping of the model family does, or the trainer.
void read_targets(ConfigReader& reader, plan::LowRankAdapters& a) {
  const ConfigNode* node = reader.find_node("targets");
  if (node == nullptr) {
    a.all_linear = true;
    reader.assume("targets", "all-linear", "as QLoRA's paper and most trainers do");
    return;
  }
  const auto add = [&](const ConfigNode& word) {
    if (auto text = read_value<std::string>(word, {"job.lora.targets"}, reader.diagnostics()))
      a.targets.push_back({std::move(*text), word.at});
  };
  if (!node->is_sequence()) {
    add(*node);
  } else {
    for (const ConfigNode& item : node->items) add(item);
    if (node->items.empty())
      reader.diagnostics().error(node->at, "job.lora.targets names no layer",
                                 "write all-linear, or a list like [q_proj, v_proj]");
  }
  a.all_linear = a.targets.size() == 1 && a.targets.front().name == "all-linear";
}

// tuners/lora: adapters are made in fp32. Since 0.6 they follow a floating weight's type (packed
// weights of a floating storage look like one); since 0.12 autocast_adapter_dtype makes 16 bits
// fp32 again.
DType adapter_type(const Release& release, const std::optional<plan::PackedWeights>& packed,
                   DType weights) {
  const DType base = packed ? packed->storage : weights;
  const bool floating = base == DType::f16 || base == DType::bf16;
  const bool follows = release >= Release{0, 6, 0, {}} && release < Release{0, 12, 0, {}};
  return floating && follows ? base : DType::f32;
}

}  // namespace

const Library kPeft{"peft", "LoRA adapters", "0.20.0", beside, used_by};

std::optional<plan::LowRankAdapters> read_adapters(const Scenario& scenario,
                                                   const Software& software,
                                                   const std::optional<plan::PackedWeights>& packed,
                                                   Assumptions& assumptions,
                                                   Diagnostics& diagnostics) {
  if (!scenario.job.lora) return std::nullopt;
  ReadContext context{diagnostics, &assumptions};
  ConfigReader reader(*scenario.job.lora, "job.lora", context);
  const Release& release = software.of("peft");
  plan::LowRankAdapters a;
  a.rank = reader.optional<std::int64_t>("rank", 8, "default of LoraConfig", kRank).value;
  reader.find<double>("alpha", Limits<double>{0, 1e6});  // a factor: neither memory nor time
  a.dropout =
      reader.optional<double>("dropout", 0.0, "default of LoraConfig", Limits<double>{0, 1}).value;
  read_targets(reader, a);
  const auto dtype = reader.find_choice<DType>("dtype", kTypes);
  a.dtype =
      dtype ? dtype->value : adapter_type(release, packed, scenario.job.precision.weights.value);
  reader.find<bool>("prepare");  // read by the trainers
  reader.finish();
  // The layer holds the frozen one as `base_layer` since 0.6 (packed) and 0.7 (others).
  a.wraps_base = release >= (packed ? Release{0, 6, 0, {}} : Release{0, 7, 0, {}});
  a.clones_base_output = packed && packed->code != plan::PackedWeights::Code::int8;
  a.adds_in_place = release < Release{0, 9, 0, {}};  // result += ...; then result = result + ...
  return a;
}

// utils/other.py prepare_model_for_kbit_training: spares Params4bit since 0.10.
bool preparation_casts_packed(const Software& software) {
  return software.of("peft") < Release{0, 10, 0, {}};
}

// Up to 0.5 the LoRA layer is itself a linear layer, whose constructor makes the dense weight
// (tuners/lora.py).
bool adapters_make_dense_layer(const Software& software) {
  return software.of("peft") < Release{0, 6, 0, {}};
}

}  // namespace sim::program
