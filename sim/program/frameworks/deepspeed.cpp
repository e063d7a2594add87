// DeepSpeed: a configuration as it is (`job.deepspeed`), or a ZeRO stage with the keys of its
// `zero_optimization` section (`strategy: {zero3: {...}}`). "auto" means what the Hugging Face
// integration makes of it (transformers integrations/deepspeed.py, trainer_config_process and
// trainer_config_finalize).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/program/hooks/zero12.h"
#include "sim/program/hooks/zero3.h"
#include "sim/program/libraries/facts.h"
#include "sim/program/strategy.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

using Device = ZeroOptions::Offload::Device;

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr Choice<Device> kDevices[] = {
    {"none", Device::none}, {"cpu", Device::cpu}, {"nvme", Device::nvme}};

bool is_auto(const ConfigNode& node) { return node.is_scalar() && node.text == "auto"; }

// fp16/bf16 "auto" follow the trainer's own flags; a bare stage takes what the scenario computes
// in.
std::optional<DType> sixteen_bits(const Scenario& scenario) {
  const PrecisionSpec& p = scenario.job.precision;
  const DType type = p.autocast ? p.autocast->value : p.weights.value;
  if (type == DType::f16 || type == DType::bf16) return type;
  return std::nullopt;
}

class ConfigurationReader {
 public:
  ConfigurationReader(const Session& session, const WrapperSettings& trainer,
                      Assumptions& assumptions, Diagnostics& diagnostics)
      : session_(session), trainer_(trainer), context_{diagnostics, &assumptions} {
    facts_ = deepspeed_facts(session.software);
    o_.states_made_in_wrap = facts_.states_made_at_once;
    o_.casts_buffers = facts_.casts_buffers;
    o_.pins_partition = facts_.pins_partition;
  }

  // The whole configuration.
  ZeroOptions whole(const ConfigNode& node) {
    ConfigReader reader(node, "deepspeed", context_);
    batch_sizes(reader);
    ConfigReader zero = reader.section("zero_optimization");
    if (!reader.has("zero_optimization")) {
      diagnostics().error(node.at, "the DeepSpeed configuration has no zero_optimization",
                          "without a stage every rank keeps everything: that is strategy ddp");
    } else {
      zero_section(zero, std::nullopt);
    }
    if (const ConfigNode* optimizer = reader.find_node("optimizer")) own_optimizer(*optimizer);
    precision(reader);
    accumulation(reader);
    for (const char* key : {"torch_autocast", "tensor_parallel", "sequence_parallel_size",
                            "hybrid_engine", "pipeline", "sparse_attention",
                            "progressive_layer_drop", "compression_training", "expert_parallel"}) {
      unmodelled(reader, key);
    }
    // Of no consequence for memory or for time that is modelled.
    for (const char* key : {"steps_per_print",
                            "wall_clock_breakdown",
                            "scheduler",
                            "prescale_gradients",
                            "gradient_predivide_factor",
                            "zero_allow_untested_optimizer",
                            "zero_force_ds_cpu_optimizer",
                            "dump_state",
                            "memory_breakdown",
                            "flops_profiler",
                            "tensorboard",
                            "wandb",
                            "csv_monitor",
                            "comet",
                            "monitor_config",
                            "comms_logger",
                            "aio",
                            "checkpoint",
                            "elasticity",
                            "communication_data_type",
                            "seed",
                            "disable_allgather",
                            "activation_checkpointing",
                            "gradient_clipping",
                            "sparse_gradients",
                            "dataloader_drop_last",
                            "use_data_before_expert_parallelism",
                            "autotuning",
                            "log_level",
                            "timers",
                            "nebula",
                            "curriculum_learning",
                            "data_efficiency",
                            "eigenvalue",
                            "graph_harvesting",
                            "managed_gradient_accumulation",
                            "compile",
                            "seq_parallel_communication_data_type"}) {
      reader.find_node(key);
    }
    reader.finish();
    return o_;
  }

  // The zero_optimization section alone.
  ZeroOptions section(const ConfigNode& node, int stage) {
    ConfigReader reader(node, fmt::format("job.strategy.zero{}", stage), context_);
    bool builds = false;
    if (stage == 3) {
      builds = reader
                   .optional<bool>("zero_init", trainer_.builds_sharded,
                                   "whether the trainer builds the model sharded")
                   .value;
    }
    zero_section(reader, stage);
    o_.low = sixteen_bits(session_.scenario);
    o_.builds_partitioned = builds;
    return o_;
  }

 private:
  Diagnostics& diagnostics() { return context_.diagnostics; }

  void precision(ConfigReader& reader) {
    for (const auto& [key, type] :
         {std::pair{"fp16", DType::f16}, std::pair{"bf16", DType::bf16}}) {
      ConfigReader section = reader.section(key);
      const ConfigNode* enabled = section.find_node("enabled");
      const ConfigNode* where = reader.find_node(key);
      bool on = false;
      if (enabled != nullptr && is_auto(*enabled)) {
        on = sixteen_bits(session_.scenario) == type;
      } else if (const auto value = section.find<bool>("enabled")) {
        on = value->value;
      }
      if (on && o_.low) {
        diagnostics().error(where->at, "fp16 and bf16 cannot both be enabled", "keep one of them");
      }
      if (on) o_.low = type;
      for (const char* other : {"loss_scale", "auto_cast", "initial_scale_power",
                                "loss_scale_window", "hysteresis", "consecutive_hysteresis",
                                "min_loss_scale", "immediate_grad_update", "check_grad_overflow"}) {
        section.find_node(other);
      }
      for (const char* other : {"fp16_master_weights_and_grads", "bf16_master_weights_and_grads",
                                "bf16_optimizer_states"}) {
        unmodelled(section, other);
      }
      section.finish();
    }
    ConfigReader amp = reader.section("amp");
    if (const auto on = amp.find<bool>("enabled"); on && on->value)
      diagnostics().error(on->at, "amp and ZeRO exclude each other", "write bf16 or fp16 instead");
    amp.find_node("opt_level");
  }

  // A feature that changes memory and is not there: refused where it is turned on.
  void unmodelled(ConfigReader& reader, const char* key) {
    const ConfigNode* node = reader.find_node(key);
    if (node == nullptr) return;
    const ConfigNode* enabled = node->is_map() ? node->find("enabled") : node;
    if (enabled != nullptr && enabled->is_scalar() &&
        (enabled->text == "false" || enabled->text == "False" || enabled->text == "1"))
      return;
    diagnostics().error(node->at, fmt::format("{} is not modelled", reader.path_of(key)),
                        "leave it out");
  }

  // data_types.grad_accum_dtype: the type in which the pieces of gradients are kept.
  void accumulation(ConfigReader& reader) {
    static constexpr Choice<DType> kTypes[] = {{"fp32", DType::f32},
                                               {"fp16", DType::f16},
                                               {"bf16", DType::bf16},
                                               {"bfloat16", DType::bf16}};
    ConfigReader types = reader.section("data_types");
    const auto type = types.find_choice<DType>("grad_accum_dtype", kTypes);
    types.finish();
    if (!type) return;
    o_.gradients = type->value;
    if (o_.stage != 3 && o_.stage != 0 && type->value == DType::f32) {
      diagnostics().error(type->at,
                          "gradients of ZeRO stages 1 and 2 kept in fp32 are not modelled",
                          "leave grad_accum_dtype out, or write stage 3");
    }
  }

  // A number of the configuration that the job states, too: transformers refuses a mismatch.
  void agrees(ConfigReader& reader, const char* key, std::int64_t job, const char* job_key) {
    const ConfigNode* node = reader.find_node(key);
    if (node == nullptr || is_auto(*node)) return;
    const auto value = reader.find<std::int64_t>(key, kPositive);
    if (value && value->value != job) {
      diagnostics().error(value->at,
                          fmt::format("{} = {}, but job.{} = {}", key, value->value, job_key, job),
                          "write \"auto\", or the job's number");
    }
  }

  void batch_sizes(ConfigReader& reader) {
    const JobSpec& job = session_.scenario.job;
    const std::int64_t batch = job.micro_batch_size.value;
    const std::int64_t steps = job.gradient_accumulation_steps.value;
    agrees(reader, "train_micro_batch_size_per_gpu", batch, "micro_batch_size");
    agrees(reader, "gradient_accumulation_steps", steps, "gradient_accumulation_steps");
    const std::int64_t all = batch * steps * session_.world_size;
    const ConfigNode* node = reader.find_node("train_batch_size");
    if (node == nullptr || is_auto(*node)) return;
    const auto value = reader.find<std::int64_t>("train_batch_size", kPositive);
    if (value && value->value != all) {
      diagnostics().error(
          value->at,
          fmt::format("train_batch_size = {}, but {} sequences x {} micro-batches x {} ranks = {}",
                      value->value, batch, steps, session_.world_size, all),
          "write \"auto\", or that number");
    }
  }

  // A count of elements. People write 5e8.
  void elements(ConfigReader& reader, const char* key, std::int64_t& field, std::int64_t least,
                std::int64_t automatic) {
    const ConfigNode* node = reader.find_node(key);
    if (node == nullptr) return;
    if (is_auto(*node)) {
      field = automatic;
      return;
    }
    const auto value = reader.find<double>(key);
    if (!value) return;
    const std::string name = reader.path_of(key);
    if (value->value != std::floor(value->value)) {
      diagnostics().error(value->at, fmt::format("{} must be a whole number of elements", name));
    } else if (value->value < static_cast<double>(least)) {
      diagnostics().error(value->at,
                          fmt::format("{} = {} must be at least {}", name, value->value, least));
    } else {
      field = value->value > static_cast<double>(kMostElements)
                  ? kMostElements
                  : static_cast<std::int64_t>(value->value);
    }
  }

  ZeroOptions::Offload offload(ConfigReader reader, std::int64_t buffers) {
    ZeroOptions::Offload f;
    f.buffers = buffers;
    f.buffer_size = 100'000'000;
    f.in_memory = 1'000'000'000;
    const auto device = reader.find_choice<Device>("device", kDevices);
    if (device) f.device = device->value;
    f.pinned = reader.find<bool>("pin_memory").value_or(Located<bool>{}).value;
    elements(reader, "buffer_count", f.buffers, 1, buffers);
    elements(reader, "buffer_size", f.buffer_size, 1, f.buffer_size);
    elements(reader, "max_in_cpu", f.in_memory, 0, f.in_memory);
    const bool path = reader.find_node("nvme_path") != nullptr;
    if (f.device == Device::nvme && !path) {
      diagnostics().error(device->at, "offload to NVMe needs nvme_path",
                          "write \"nvme_path\": \"/local_nvme\" beside the device");
    }
    for (const char* key : {"pipeline", "pipeline_read", "pipeline_write", "fast_init"})
      reader.find_node(key);
    unmodelled(reader, "super_offload");
    reader.find_node("cpuadam_cores_perc");
    if (const auto ratio = reader.find<double>("ratio", Limits<double>{0, 1});
        ratio && ratio->value < 1) {
      diagnostics().error(ratio->at, "a partial offload is not modelled", "leave ratio out");
    }
    reader.finish();
    return f;
  }

  std::int64_t hidden_size() {
    const ConfigNode* node = session_.scenario.model.config.find("hidden_size");
    if (node == nullptr) return 0;
    Diagnostics unread;
    return read_value<std::int64_t>(*node, {"hidden_size"}, unread).value_or(0);
  }

  void read_stage(ConfigReader& reader, std::optional<int> given) {
    if (given) {
      o_.stage = *given;
      return;
    }
    const auto stage = reader.find<std::int64_t>("stage");
    const Span at = stage ? stage->at : reader.at();
    if (stage && (stage->value < 0 || stage->value > 3)) {
      diagnostics().error(at, fmt::format("there is no ZeRO stage {}", stage->value),
                          "stages are 1 (optimizer states), 2 (and gradients), 3 (and parameters)");
    } else if (!stage || stage->value == 0) {
      diagnostics().error(at, "ZeRO stage 0 partitions nothing",
                          "write stage 1, 2 or 3, or strategy ddp without this configuration");
    } else {
      o_.stage = static_cast<int>(stage->value);
    }
  }

  void zero_section(ConfigReader& reader, std::optional<int> given) {
    read_stage(reader, given);
    const std::int64_t h = hidden_size();
    const auto flag = [&](const char* key, bool& field) {
      const ConfigNode* node = reader.find_node(key);
      if (node == nullptr || is_auto(*node)) return;
      if (const auto value = reader.find<bool>(key)) field = value->value;
    };
    o_.overlaps = o_.stage == 3 && facts_.overlaps_in_stage_3;
    flag("overlap_comm", o_.overlaps);
    flag("contiguous_gradients", o_.contiguous_gradients);
    flag("reduce_scatter", o_.reduce_scatter);
    flag("round_robin_gradients", o_.round_robin);
    flag("stage3_gather_16bit_weights_on_model_save", o_.gathers_on_save);
    flag("stage3_gather_fp16_weights_on_model_save", o_.gathers_on_save);  // its name until 0.7
    elements(reader, "reduce_bucket_size", o_.reduce_bucket, 1, h * h);
    std::int64_t unused = 0;
    elements(reader, "allgather_bucket_size", unused, 1, 500'000'000);
    elements(reader, "stage3_prefetch_bucket_size", o_.prefetch_bucket, 0, h * h * 9 / 10);
    elements(reader, "stage3_param_persistence_threshold", o_.persistence_threshold, 0, 10 * h);
    elements(reader, "stage3_max_live_parameters", o_.max_live, 0, o_.max_live);
    elements(reader, "stage3_max_reuse_distance", o_.max_reuse_distance, 0, o_.max_reuse_distance);
    // Without their prefix the same.
    elements(reader, "prefetch_bucket_size", o_.prefetch_bucket, 0, h * h * 9 / 10);
    elements(reader, "param_persistence_threshold", o_.persistence_threshold, 0, 10 * h);
    elements(reader, "max_live_parameters", o_.max_live, 0, o_.max_live);
    elements(reader, "max_reuse_distance", o_.max_reuse_distance, 0, o_.max_reuse_distance);
    elements(reader, "stage3_model_persistence_threshold", o_.persistence_limit, 0,
             o_.persistence_limit);
    elements(reader, "sub_group_size", o_.sub_group, 0, o_.sub_group);
    // What the offload sections were until 0.5.
    bool old_optimizer = false, old_parameters = false, old_pinned = false;
    flag("cpu_offload", old_optimizer);
    flag("cpu_offload_params", old_parameters);
    flag("cpu_offload_param", old_parameters);
    flag("cpu_offload_use_pin_memory", old_pinned);
    if (old_optimizer) o_.optimizer = {Device::cpu, old_pinned, 0, 0, 0};
    if (old_parameters) o_.parameters = {Device::cpu, old_pinned, 0, 0, 0};
    if (reader.has("offload_optimizer"))
      o_.optimizer = offload(reader.section("offload_optimizer"), 4);
    if (reader.has("offload_param")) {
      const ConfigNode* node = reader.find_node("offload_param");
      o_.parameters = offload(reader.section("offload_param"), 5);
      if (o_.parameters.anywhere() && o_.stage != 3 && o_.stage != 0) {
        diagnostics().error(node->at, "parameters are offloaded by ZeRO stage 3 alone",
                            "write stage 3, or leave offload_param out");
      }
    }
    for (const char* key :
         {"allgather_partitions", "load_from_fp32_weights", "elastic_checkpoint",
          "ignore_unused_parameters", "legacy_stage1", "memory_efficient_linear",
          "override_module_apply", "pipeline_loading_checkpoint",
          "stage3_use_all_reduce_for_fetch_params", "use_multi_rank_bucket_allreduce",
          "log_trace_cache_warnings", "enable_sanity_checks"}) {
      reader.find_node(key);
    }
    for (const char* key : {"zero_quantized_weights", "zero_quantized_nontrainable_weights",
                            "zero_quantized_gradients", "mics_hierarchical_params_gather"}) {
      if (const auto on = reader.find<bool>(key); on && on->value)
        diagnostics().error(on->at, fmt::format("{} is not modelled", key), "leave it out");
    }
    for (const char* key : {"zenflow", "leaf_module", "stage3_module_granularity_threshold",
                            "save_muon_momentum_buffer_in_memory", "zeropp_loco_param"}) {
      unmodelled(reader, key);
    }
    if (const auto groups = reader.find<std::int64_t>("zero_hpz_partition_size");
        groups && groups->value > 1) {
      diagnostics().error(groups->at, "secondary partitions (hpZ) are not modelled",
                          "leave zero_hpz_partition_size out");
    }
    reader.finish();
    o_.builds_partitioned = o_.stage == 3 && trainer_.builds_sharded;
  }

  // DeepSpeed's own Adam: FusedAdam on the device, DeepSpeedCPUAdam on the host.
  void own_optimizer(const ConfigNode& node) {
    ConfigReader reader(node, "deepspeed.optimizer", context_);
    const auto type = reader.find<std::string>("type");
    reader.find_node("params");
    reader.finish();
    if (!type) return;
    if (type->value != "Adam" && type->value != "AdamW") {
      diagnostics().error(type->at,
                          fmt::format("optimizer '{}' of DeepSpeed is not modelled", type->value),
                          "write AdamW or Adam");
      return;
    }
    o_.fused_adam = true;
  }

  const Session& session_;
  const WrapperSettings& trainer_;
  ReadContext context_;
  DeepSpeedFacts facts_;
  ZeroOptions o_;
};

std::unique_ptr<Strategy> build(const Session& session, const ZeroOptions& options, const Span& at,
                                std::size_t errors, Assumptions& assumptions,
                                Diagnostics& diagnostics) {
  const auto& save = session.scenario.job.save;
  if (save && save->state_dict.value != SaveSpec::StateDict::full) {
    diagnostics.error(save->state_dict.at, "only the full state dict is modelled",
                      "write state_dict: full");
  }
  const auto& packing = session.scenario.job.quantization;
  if (options.builds_partitioned && packing && !packs_sharded_models(session.software)) {
    diagnostics.error(packing->at,
                      fmt::format("transformers {} does not load packed weights under ZeRO-3",
                                  session.software.of("transformers").text),
                      "name 4.39 or later under software");
  }
  if (session.plan.implementations.preference_pairs &&
      !session.plan.implementations.reference.empty()) {
    diagnostics.error(at, "a reference model beside a partitioned one is not modelled",
                      "give job.lora: the policy without adapters is its own reference then");
  }
  if (options.parameters.device == Device::nvme) {
    std::int64_t largest = 0;
    for (const plan::Parameter& p : session.plan.graph.parameters) {
      largest = std::max(largest,
                         (p.type.shape.elements() + session.world_size - 1) / session.world_size);
    }
    // partitioned_param_swapper.py asserts that a piece fits.
    if (largest > options.parameters.buffer_size) {
      diagnostics.error(at,
                        fmt::format("offload_param.buffer_size = {} elements, but the largest "
                                    "piece of a parameter has {}",
                                    options.parameters.buffer_size, largest),
                        "raise buffer_size, or use more processes");
    }
  }
  const bool swaps_states = options.optimizer.device == Device::nvme;
  if (swaps_states && options.stage != 3) {
    diagnostics.error(at, "optimizer states go to NVMe in ZeRO stage 3 alone",
                      "write stage 3, or device: cpu");
  }
  if (diagnostics.error_count() > errors) return nullptr;
  if (options.optimizer.anywhere()) {
    assumptions.add("host.adam", "25 GB/s",
                    "memory traffic of one process's Adam on the host: no measurement is public");
  }
  if (swaps_states || options.parameters.device == Device::nvme)
    assumptions.add("host.nvme", "3 GB/s", "one local NVMe disk a process, either way");
  if (options.stage == 3) return std::make_unique<Zero3>(session, options);
  return std::make_unique<Zero12>(session, options);
}

const ConfigNode& options_of(const StrategySpec* spec) {
  static const ConfigNode none;
  return spec != nullptr ? spec->options : none;
}

Span place_of(const Session& session, const StrategySpec* spec) {
  return spec != nullptr ? spec->name.at : session.scenario.job.framework->at;
}

std::unique_ptr<Strategy> make_whole(const Session& session, const StrategySpec* spec,
                                     const WrapperSettings& trainer, Assumptions& assumptions,
                                     Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  ConfigurationReader reader(session, trainer, assumptions, diagnostics);
  const ZeroOptions options = reader.whole(options_of(spec));
  return build(session, options, place_of(session, spec), errors, assumptions, diagnostics);
}

template <int stage>
std::unique_ptr<Strategy> make_stage(const Session& session, const StrategySpec* spec,
                                     const WrapperSettings& trainer, Assumptions& assumptions,
                                     Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  ConfigurationReader reader(session, trainer, assumptions, diagnostics);
  const ZeroOptions options = reader.section(options_of(spec), stage);
  return build(session, options, place_of(session, spec), errors, assumptions, diagnostics);
}

// The engine casts the whole module and runs no autocast.
void compute_in(std::optional<DType> low, const Scenario& scenario,
                plan::Implementations& implementations) {
  implementations.compute = low.value_or(scenario.job.precision.weights.value);
  implementations.cast_to = low;
  if (low) implementations.autocast = std::nullopt;
}

void precision_of_stage(const Scenario& scenario, const StrategySpec*, const WrapperSettings&,
                        plan::Implementations& implementations) {
  compute_in(sixteen_bits(scenario), scenario, implementations);
}

// What is wrong with the sections is said by make().
void precision_of_whole(const Scenario& scenario, const StrategySpec* spec, const WrapperSettings&,
                        plan::Implementations& implementations) {
  std::optional<DType> low;
  for (const auto& [key, type] : {std::pair{"fp16", DType::f16}, std::pair{"bf16", DType::bf16}}) {
    const ConfigNode* section = options_of(spec).find(key);
    const ConfigNode* enabled = section != nullptr ? section->find("enabled") : nullptr;
    if (enabled == nullptr) continue;
    if (is_auto(*enabled) ? sixteen_bits(scenario) == type : enabled->text == "true") low = type;
  }
  compute_in(low, scenario, implementations);
}

}  // namespace

extern const Framework kDeepSpeedEngine, kZero1, kZero2, kZero3;
const Framework kDeepSpeedEngine{"deepspeed", "DeepSpeed as its configuration says (job.deepspeed)",
                                 precision_of_whole, make_whole};
const Framework kZero1{"zero1", "DeepSpeed ZeRO stage 1: optimizer states cut", precision_of_stage,
                       make_stage<1>};
const Framework kZero2{"zero2", "DeepSpeed ZeRO stage 2: states and gradients cut",
                       precision_of_stage, make_stage<2>};
const Framework kZero3{"zero3", "DeepSpeed ZeRO stage 3: states, gradients and parameters cut",
                       precision_of_stage, make_stage<3>};

}  // namespace sim::program
