#include "sim/scenario/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "sim/base/text.h"
#include "sim/scenario/config_reader.h"
#include "sim/scenario/data_files.h"

namespace sim {
namespace {

// Bounds that keep every later product of sizes within 64 bits.
constexpr Limits<std::int64_t> kBatch{1, 1 << 16};
constexpr Limits<std::int64_t> kSequence{1, 1 << 22};
constexpr Limits<std::int64_t> kVocabulary{1, 1 << 24};
constexpr Limits<Bytes> kCap{2_MiB, 1024_GiB};  // from the smallest segment on
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

constexpr Choice<DType> kWeightTypes[] = {
    {"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}};
constexpr Choice<std::optional<DType>> kAutocastTypes[] = {
    {"none", std::nullopt}, {"fp16", DType::f16}, {"bf16", DType::bf16}};
constexpr Choice<ActivationCheckpointing> kCheckpointing[] = {
    {"none", ActivationCheckpointing::none},
    {"full", ActivationCheckpointing::full},
    {"false", ActivationCheckpointing::none},
    {"true", ActivationCheckpointing::full}};
constexpr Choice<WeightsSource> kWeightsSources[] = {{"checkpoint", WeightsSource::checkpoint},
                                                     {"random", WeightsSource::random}};
constexpr Choice<LoadingSpec::Format> kFormats[] = {
    {"safetensors", LoadingSpec::Format::safetensors}, {"bin", LoadingSpec::Format::bin}};
constexpr Choice<Objective> kObjectives[] = {{"language_model", Objective::language_model},
                                             {"dpo", Objective::dpo}};
constexpr Choice<SaveSpec::StateDict> kStateDicts[] = {{"full", SaveSpec::StateDict::full},
                                                       {"sharded", SaveSpec::StateDict::sharded},
                                                       {"local", SaveSpec::StateDict::local}};
constexpr Choice<SaveSpec::Place> kPlaces[] = {{"gpu", SaveSpec::Place::gpu},
                                               {"cpu", SaveSpec::Place::cpu}};
constexpr Choice<SaveSpec::Ranks> kRanks[] = {{"all", SaveSpec::Ranks::all},
                                              {"rank0", SaveSpec::Ranks::rank0}};
constexpr Choice<SaveSpec::Callers> kCallers[] = {{"all", SaveSpec::Callers::all},
                                                  {"rank0", SaveSpec::Callers::rank0}};

// `name`, or `{name: {its options}}` with one or more names.
std::vector<StrategySpec> read_named_options(const ConfigNode& node, FieldName field,
                                             Diagnostics& diagnostics) {
  std::vector<StrategySpec> all;
  if (!node.is_map()) {
    const auto name = read_value<std::string>(node, field, diagnostics);
    if (name) all.push_back({{*name, node.at}, {}});
    return all;
  }
  for (const ConfigNode::Entry& entry : node.entries) {
    if (!entry.value.is_map() && !entry.value.is_null()) {
      diagnostics.error(entry.value.at,
                        fmt::format("the options of {} must be a map, not {}", in_quotes(entry.key),
                                    describe(entry.value)),
                        fmt::format("write {{{}: {{option: value}}}}", printable(entry.key, 64)));
      continue;
    }
    all.push_back({{entry.key, entry.key_at}, entry.value});
    if (all.back().options.is_null()) all.back().options.at = entry.key_at;
  }
  return all;
}

std::vector<StrategySpec> read_strategies(ConfigReader& job) {
  const ConfigNode* node = job.find_node("strategy");
  if (!node || (node->is_scalar() && node->text == "none")) return {};
  return read_named_options(*node, {"job.strategy"}, job.diagnostics());
}

// `deepspeed: ds_config.json`, or the configuration itself: the strategy of that name.
void read_deepspeed(ConfigReader& reader, std::vector<StrategySpec>& strategies) {
  const ConfigNode* node = reader.find_node("deepspeed");
  if (node == nullptr) return;
  if (node->is_map()) {
    strategies.push_back({{"deepspeed", node->at}, *node});
    return;
  }
  Diagnostics& diagnostics = reader.diagnostics();
  const auto path = read_value<std::string>(*node, {"job.deepspeed"}, diagnostics);
  if (!path) return;
  const auto file = read_source_file(path_beside(node->at, *path), node->at, diagnostics);
  if (!file) return;
  std::optional<ConfigNode> config = parse_config(file, diagnostics);
  if (!config) return;
  if (!config->is_map()) {
    diagnostics.error(config->at, fmt::format("a DeepSpeed configuration must be a map, not {}",
                                              describe(*config)));
    return;
  }
  strategies.push_back({{"deepspeed", node->at}, std::move(*config)});
}

void read_optimizer(ConfigReader& reader, JobSpec& job) {
  const ConfigNode* node = reader.find_node("optimizer");
  if (!node) {
    job.optimizer = reader.optional_named("optimizer", "adamw", "the trainers' own default");
    return;
  }
  std::vector<StrategySpec> chosen =
      read_named_options(*node, {"job.optimizer"}, reader.diagnostics());
  if (chosen.size() == 1) {
    job.optimizer = std::move(chosen.front().name);
    job.optimizer_options = std::move(chosen.front().options);
  } else if (node->is_map()) {
    reader.diagnostics().error(node->at, "job.optimizer must name one optimizer",
                               "write adamw, or {adamw: {foreach: true}}");
  }
}

PrecisionSpec read_precision(ConfigReader precision) {
  PrecisionSpec spec;
  spec.weights = precision.choice<DType>("weights", kWeightTypes,
                                         "from_pretrained without torch_dtype loads fp32");
  const auto autocast = precision.choice<std::optional<DType>>(
      "autocast", kAutocastTypes, "torch.autocast is off unless asked for");
  if (autocast.value) spec.autocast = {*autocast.value, autocast.at};
  spec.tf32 = precision.optional<bool>("tf32", false, "off in torch since 1.12").value;
  if (const auto mixed = precision.find<bool>("mixed_precision"))
    spec.mixed_precision = mixed->value;
  precision.finish();
  return spec;
}

LoadingSpec read_loading(ConfigReader loading) {
  LoadingSpec spec;
  const auto take = [](const auto& found, auto& field) {
    if (found) field = found->value;
  };
  take(loading.find_choice<LoadingSpec::Format>("format", kFormats), spec.format);
  spec.file_dtype = loading.find_choice<DType>("file_dtype", kWeightTypes);
  take(loading.find<Bytes>("shard_size"), spec.shard_size);
  take(loading.find<bool>("low_cpu_mem_usage"), spec.low_cpu_mem_usage);
  loading.finish();
  return spec;
}

SaveSpec read_save(ConfigReader save) {
  SaveSpec spec;
  spec.at = save.at();
  spec.state_dict = save.choice<SaveSpec::StateDict>("state_dict", kStateDicts,
                                                     "one file that any script can load");
  spec.place =
      save.choice<SaveSpec::Place>("place", kPlaces, "offload_to_cpu is false unless asked for");
  spec.ranks =
      save.choice<SaveSpec::Ranks>("ranks", kRanks, "rank0_only is false unless asked for");
  spec.called_by =
      save.choice<SaveSpec::Callers>("called_by", kCallers, "gathering needs every rank");
  save.finish();
  return spec;
}

void read_sizes(ConfigReader& reader, JobSpec& job) {
  job.micro_batch_size =
      reader.optional<std::int64_t>("micro_batch_size", 1, "one sequence at a time", kBatch);
  job.sequence_length = reader.required<std::int64_t>("sequence_length", kSequence);
  job.gradient_accumulation_steps = reader.optional<std::int64_t>(
      "gradient_accumulation_steps", 1, "the trainers' own default", kSmallPositive);
  if (const auto no_sync = reader.find<bool>("no_sync")) job.no_sync = no_sync->value;
  job.steps = reader.optional<std::int64_t>(
      "steps", 6, "the third is the one reported; the allocator's cache settles in those after it",
      kSmallPositive);
  job.vocab_size = reader.find<std::int64_t>("vocab_size", kVocabulary);
  if (job.micro_batch_size.value * job.sequence_length.value > kMostTokens) {
    reader.diagnostics().error(
        job.micro_batch_size.at,
        fmt::format("a micro-batch of more than {} tokens", group_digits(kMostTokens)));
  }
}

// PYTORCH_CUDA_ALLOC_CONF as written, or its options as a map: {max_split_size_mb: 64}. A list is
// written as that variable writes lists, [256:1,512:2].
std::string read_allocator_conf(const ConfigNode& conf, Diagnostics& diagnostics) {
  if (!conf.is_map()) {
    return read_value<std::string>(conf, {"allocator.conf"}, diagnostics).value_or("");
  }
  std::vector<std::string> options;
  for (const ConfigNode::Entry& entry : conf.entries) {
    const std::string name = fmt::format("allocator.conf.{}", printable(entry.key, 64));
    std::vector<std::string> words;
    const auto add = [&](const ConfigNode& word) {
      words.push_back(read_value<std::string>(word, {name}, diagnostics).value_or(""));
    };
    if (entry.value.is_sequence()) {
      for (const ConfigNode& item : entry.value.items) add(item);
      options.push_back(fmt::format("{}:[{}]", entry.key, join(words, ",")));
    } else {
      add(entry.value);
      options.push_back(fmt::format("{}:{}", entry.key, words.front()));
    }
  }
  return join(options, ",");
}

// major[.minor[.patch[.more]]] and what Python releases may carry behind: rc1, .post2, .dev0,
// +cu118.
struct ReleaseParts {
  std::string_view numbers;
  std::string_view suffix;
};

ReleaseParts split_release(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') ||
                               (text[end] == '.' && end + 1 < text.size() && text[end + 1] >= '0' &&
                                text[end + 1] <= '9'))) {
    ++end;
  }
  return {text.substr(0, end), text.substr(end)};
}

bool is_release_suffix(std::string_view suffix) {
  if (suffix.empty()) return true;
  const bool known = std::ranges::any_of(
      std::initializer_list<std::string_view>{"a", "b", "rc", ".post", ".dev", "+"},
      [&](std::string_view start) {
        return suffix.starts_with(start) && suffix.size() > start.size();
      });
  return known && suffix.find_first_not_of(
                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_") ==
                      std::string_view::npos;
}

}  // namespace

std::optional<Release> parse_release(std::string_view text) {
  const auto [numbers, suffix] = split_release(text);
  if (numbers.empty() || numbers.front() == '.' || !is_release_suffix(suffix)) return std::nullopt;
  Release release;
  release.text = std::string(text);
  int* const parts[] = {&release.major, &release.minor, &release.patch};
  const char* at = numbers.data();
  const char* const end = numbers.data() + numbers.size();
  for (int* part : parts) {
    const auto [next, error] = std::from_chars(at, end, *part);
    if (error != std::errc{}) return std::nullopt;
    if (next == end) break;
    at = next + 1;
  }
  return release;
}

JobSpec read_job(const ConfigNode& node, ReadContext& context) {
  ConfigReader reader(node, "job", context);
  JobSpec job;
  job.node = node;
  job.trainer = reader.optional_named("trainer", "pytorch", "a bare training loop");
  job.framework = reader.find_named("framework");
  job.strategies = read_strategies(reader);
  read_deepspeed(reader, job.strategies);
  job.precision = read_precision(reader.section("precision"));
  read_optimizer(reader, job);
  read_sizes(reader, job);
  job.checkpointing = reader
                          .choice<ActivationCheckpointing>("activation_checkpointing",
                                                           kCheckpointing, "off unless asked for")
                          .value;
  if (const auto reentrant = reader.find<bool>("checkpoint_reentrant"))
    job.checkpoint_reentrant = reentrant->value;
  if (const auto attention = reader.find_named("attention")) job.attention = *attention;
  job.max_grad_norm = reader.find<double>("max_grad_norm", Limits<double>{0, 1e30});
  job.weights =
      reader
          .choice<WeightsSource>("weights", kWeightsSources, "fine-tuning starts from a checkpoint")
          .value;
  job.loading = read_loading(reader.section("loading"));
  if (const auto objective = reader.find_choice<Objective>("objective", kObjectives))
    job.objective = objective->value;
  if (const ConfigNode* packing = reader.find_node("quantization")) job.quantization = *packing;
  if (const ConfigNode* adapters = reader.find_node("lora")) job.lora = *adapters;
  if (reader.has("save")) job.save = read_save(reader.section("save"));
  reader.finish();
  return job;
}

SoftwareSpec read_software(const ConfigNode& node, ReadContext& context) {
  SoftwareSpec software;
  software.at = node.at;
  ConfigReader check(node, "software", context);
  for (const ConfigNode::Entry& entry : node.entries) {
    const std::string name = check.path_of(entry.key);
    const auto text = read_value<std::string>(entry.value, {name}, context.diagnostics);
    const auto release = text ? parse_release(*text) : std::nullopt;
    if (release) {
      software.releases[entry.key] = {*release, entry.value.at};
    } else if (text) {
      context.diagnostics.error(entry.value.at,
                                fmt::format("{} cannot be {}", name, in_quotes(*text)),
                                "write a release like 2.0.1 or 2.1.0+cu118");
    }
  }
  return software;
}

AllocatorSpec read_allocator(const ConfigNode& node, ReadContext& context) {
  ConfigReader reader(node, "allocator", context);
  AllocatorSpec spec;
  if (const ConfigNode* conf = reader.find_node("conf")) {
    spec.conf_at = conf->at;
    spec.conf = read_allocator_conf(*conf, context.diagnostics);
  }
  const auto fraction = reader.find<double>("memory_fraction", Limits<double>{0, 1});
  if (fraction && fraction->value <= 0) {
    context.diagnostics.error(fraction->at, "allocator.memory_fraction must be above 0");
  } else if (fraction) {
    spec.memory_fraction = fraction->value;
  }
  if (const auto cap = reader.find<Bytes>("cap", kCap)) spec.cap = cap->value;
  reader.finish();
  return spec;
}

ObservedSpec read_observed(const ConfigNode& node, ReadContext& context) {
  ConfigReader reader(node, "observed", context);
  ObservedSpec spec;
  const auto read = [&](std::string_view key, std::optional<Bytes>& field) {
    const auto value = reader.find<Bytes>(key);
    if (!value) return;
    field = value->value;
    reader.assume(key, write_value(value->value), "as printed by the report");
  };
  read("total", spec.total);
  read("free", spec.free);
  read("reserved", spec.reserved);
  read("outside_allocator", spec.outside_allocator);
  reader.finish();
  return spec;
}

std::vector<Expectation> read_expect(const ConfigNode& node, ReadContext& context) {
  ConfigReader check(node, "expect", context);
  std::vector<Expectation> all;
  for (const ConfigNode::Entry& entry : node.entries) all.push_back({entry.key, entry.value});
  return all;
}

}  // namespace sim
