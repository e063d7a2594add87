// What one release of a real library does that memory or time can feel: each fact a value, with the
// range of releases where it holds and its source in the library's own file. No other file compares
// releases.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/catalog.h"
#include "sim/base/units.h"
#include "sim/plan/implementation.h"
#include "sim/program/lower.h"
#include "sim/scenario/job_spec.h"

namespace sim::program {

// A library that scenarios may name under `software`.
struct Library {
  std::string_view name;  // as on PyPI
  std::string_view description;
  std::string_view newest;  // the release taken where nothing dates it
  // The release that belongs to a torch release of about the same month; empty: not dated.
  std::string_view (*beside_torch)(const Release& torch);
  // Whether the job uses it at all; null: always.
  bool (*used_by)(const JobSpec& job) = nullptr;
};
const Catalog<Library>& library_catalog();
extern const Library kTorch, kTransformers, kNccl, kAccelerate, kBitsandbytes, kPeft, kDeepSpeed;

// --- torch.cpp
struct TorchFacts {
  Bytes matrix_workspace;  // cuBLAS workspace per thread and stream; zero: outside the allocator
  bool zero_grad_to_none = true;   // the default of Module.zero_grad
  bool foreach_by_default = true;  // of optimizers, where all parameters are on a GPU
  bool foreach_on_flat_parameters = true;
  int foreach_temporary_sets = 1;            // full sets of temporaries of foreach AdamW
  bool limit_all_gathers = true;             // FSDP's default
  bool backward_prefetch = true;             // FSDP's default is BACKWARD_PRE
  bool gradient_always_copied = false;       // reduce-scatter input is a copy even without padding
  bool state_dict_on_compute_stream = true;  // unshard of a full state dict
  bool warning_names_rank = true;
  Duration watchdog{};  // default process-group timeout of the NCCL backend
};
TorchFacts torch_facts(const Release& torch, int compute_capability);
// The kernel that scaled_dot_product_attention takes first, where its inputs suit.
plan::AttentionKind preferred_sdpa(const Release& torch, int compute_capability);

// --- transformers.cpp
// The facts of modelling code that depend on the release alone.
void apply_modelling_code(const Software& software, std::string_view architecture,
                          plan::Implementations& implementations);
// Where the release is older than the model's class: a dated one gives way to the class's first, a
// named one is taken as a fork that runs it. Either is filed.
void date_architecture(const Scenario& scenario, Software& software, Assumptions& assumptions);
bool sdpa_is_default(const Software& software);
bool trainer_limits_all_gathers(const Software& software);

// Files of a checkpoint and their way into memory.
struct LoadingFacts {
  bool safetensors = true;          // memory-mapped files are preferred to pickled ones
  bool assigns_mapped = false;      // parameters become the mapped tensors where types agree
  bool low_memory_default = false;  // every model is built without memory first
  bool always_low_memory = false;   // low_cpu_mem_usage cannot be turned off
  Bytes shard;                      // most bytes of one file
  bool places_unpacked = false;     // tensors that stay unpacked are set by the placing library
};
LoadingFacts loading_facts(const Scenario& scenario, const Software& software);
// Whether from_pretrained packs a model at all where its weights will be sharded by the engine.
bool packs_sharded_models(const Software& software);

// --- accelerate.cpp: whether each tensor that it moves to the device ends in empty_cache()
bool placing_empties_cache(const Software& software);

// --- bitsandbytes.cpp: `job.quantization`
std::optional<plan::PackedWeights> read_quantization(const Scenario& scenario,
                                                     const Software& software,
                                                     Assumptions& assumptions,
                                                     Diagnostics& diagnostics);

// Elements that share a scale in 8-bit optimizer states.
std::int64_t optimizer_block(const Software& software);

// --- peft.cpp: `job.lora`
std::optional<plan::LowRankAdapters> read_adapters(const Scenario& scenario,
                                                   const Software& software,
                                                   const std::optional<plan::PackedWeights>& packed,
                                                   Assumptions& assumptions,
                                                   Diagnostics& diagnostics);
// The adapted layer's constructor makes a whole fp32 weight on the host, which is dropped at once.
bool adapters_make_dense_layer(const Software& software);

// Preparing for training makes packed data of a 16-bit storage type fp32, too.
bool preparation_casts_packed(const Software& software);

// --- deepspeed.cpp
struct DeepSpeedFacts {
  bool states_made_at_once = true;   // inside initialize(), by a step on zero gradients
  bool casts_buffers = true;         // floating buffers follow the parameters' type
  bool pins_partition = false;       // stages 1 and 2, offloaded: whatever pin_memory says
  bool overlaps_in_stage_3 = false;  // overlap_comm where the configuration leaves it open
};
DeepSpeedFacts deepspeed_facts(const Software& software);

// --- nccl.cpp: device memory of one communicator
Bytes communicator_memory(int compute_capability, std::int64_t ranks);

}  // namespace sim::program
