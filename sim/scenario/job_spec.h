// What the job is asked to do: trainer, strategy, precision, sizes, lifecycle.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/scenario/config_node.h"

namespace sim {

struct ReadContext;

// A release as people write it: 2.0.1, 4.31.0, 2.11.0+cu130. Compared by its numbers.
struct Release {
  int major = 0, minor = 0, patch = 0;
  std::string text;  // as written
  friend bool operator==(const Release& a, const Release& b) {
    return a.major == b.major && a.minor == b.minor && a.patch == b.patch;
  }
  friend auto operator<=>(const Release& a, const Release& b) {
    if (auto c = a.major <=> b.major; c != 0) return c;
    if (auto c = a.minor <=> b.minor; c != 0) return c;
    return a.patch <=> b.patch;
  }
};
std::optional<Release> parse_release(std::string_view text);

// The releases of one scenario. What it leaves out is dated from the rest by the program floor's
// libraries and filed as an assumption. Names are those of PyPI: torch, transformers, accelerate,
// ...
struct SoftwareSpec {
  std::map<std::string, Located<Release>> releases;
  Span at;
};

struct PrecisionSpec {
  Located<DType> weights{DType::f32, {}};  // dtype of the parameters as loaded
  std::optional<Located<DType>> autocast;  // torch.autocast's dtype; absent = off
  bool tf32 = false;
  std::optional<bool>
      mixed_precision;  // FSDP MixedPrecision from the autocast dtype; absent = as the trainer does
};

enum class ActivationCheckpointing : std::uint8_t { none, full };

// A strategy of the open set, e.g. {fsdp: {sharding: full_shard, wrap: LlamaDecoderLayer}}; the
// framework that owns it reads its own options.
struct StrategySpec {
  Named name;
  ConfigNode options;
};

enum class WeightsSource : std::uint8_t {
  checkpoint,  // read from files by from_pretrained
  random       // from_config on the device: no file is read
};

// How from_pretrained reads the checkpoint. What is absent is as the release and the trainer do it.
struct LoadingSpec {
  enum class Format : std::uint8_t { safetensors, bin };
  std::optional<Format> format;
  std::optional<Located<DType>> file_dtype;  // of the stored weights; else config.json's
  std::optional<Bytes> shard_size;           // most that one file of the checkpoint holds
  std::optional<bool> low_cpu_mem_usage;
};

enum class Objective : std::uint8_t { language_model, dpo };

struct SaveSpec {
  enum class StateDict : std::uint8_t { full, sharded, local };
  enum class Place : std::uint8_t { gpu, cpu };  // where the gathered entries live: offload_to_cpu
  enum class Ranks : std::uint8_t { all, rank0 };    // who keeps entries: rank0_only
  enum class Callers : std::uint8_t { all, rank0 };  // who calls state_dict() at all
  Located<StateDict> state_dict{StateDict::full, {}};
  Located<Place> place{Place::gpu, {}};
  Located<Ranks> ranks{Ranks::all, {}};
  Located<Callers> called_by{Callers::all, {}};
  Span at;
};

struct JobSpec {
  Named trainer;                   // fastchat, hf_trainer, pytorch (a bare loop)
  std::optional<Named> framework;  // absent = the one that the trainer uses for these strategies
  std::vector<StrategySpec> strategies;  // empty (absent or none) = the trainer's own
  PrecisionSpec precision;
  Named optimizer;
  ConfigNode optimizer_options;
  Located<std::int64_t> micro_batch_size{1, {}};
  Located<std::int64_t> sequence_length{0, {}};
  Located<std::int64_t> gradient_accumulation_steps{1, {}};
  std::optional<bool> no_sync;  // gradients are reduced in a step's last micro-batch alone; absent
                                // = as the trainer does
  Located<std::int64_t> steps{6, {}};  // optimizer steps to run before the save
  ActivationCheckpointing checkpointing = ActivationCheckpointing::none;
  std::optional<bool> checkpoint_reentrant;
  Named attention;  // eager, sdpa, flash_attention_2; no name = the release's own choice
  std::optional<Located<double>> max_grad_norm;
  WeightsSource weights = WeightsSource::checkpoint;
  LoadingSpec loading;
  Objective objective = Objective::language_model;
  std::optional<ConfigNode> quantization, lora;     // read by the libraries that do it
  std::optional<SaveSpec> save;                     // absent = nothing is saved
  std::optional<Located<std::int64_t>> vocab_size;  // after the script resized the embeddings
  ConfigNode node;  // the whole `job` map, for extensions that read their own keys
};

// `allocator:` PYTORCH_CUDA_ALLOC_CONF and caps.
struct AllocatorSpec {
  std::string conf;  // e.g. "max_split_size_mb:64"; empty = defaults
  Span conf_at;
  std::optional<double> memory_fraction;  // torch.cuda.set_per_process_memory_fraction
  std::optional<Bytes> cap;               // the same as bytes of the device's total
};

// `observed:` what a report printed; fixes what cannot be modelled. Each is listed as an
// assumption.
struct ObservedSpec {
  std::optional<Bytes> total, free, reserved;  // usable by PyTorch = reserved + free
  std::optional<Bytes> outside_allocator;      // stated directly instead
};

// `expect:` checked by `rehearse check` and by tests/reports.
struct Expectation {
  std::string key;  // verdict, phase, tried, allocated, ...
  ConfigNode value;
};

// The sections of a scenario, each from its map; what is wrong is filed in the context.
JobSpec read_job(const ConfigNode& node, ReadContext& context);
SoftwareSpec read_software(const ConfigNode& node, ReadContext& context);
AllocatorSpec read_allocator(const ConfigNode& node, ReadContext& context);
ObservedSpec read_observed(const ConfigNode& node, ReadContext& context);
std::vector<Expectation> read_expect(const ConfigNode& node, ReadContext& context);

}  // namespace sim
