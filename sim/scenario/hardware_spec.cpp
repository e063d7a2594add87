#include "sim/scenario/hardware_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "sim/base/text.h"
#include "sim/scenario/config_reader.h"
#include "sim/scenario/data_files.h"
#include "sim/scenario/interconnect_words.h"

namespace sim {
namespace {

constexpr Choice<FormFactor> kFormFactors[] = {
    {"sxm", FormFactor::sxm},
    {"pcie", FormFactor::pcie},
};

constexpr DType kPeakTypes[] = {DType::f8,   DType::i8,  DType::bf16, DType::f16,
                                DType::tf32, DType::f32, DType::f64};

// Every figure of a hardware file is cited under `source` by its key, and nothing else is.
void check_sources(ConfigReader& reader, const ConfigNode& root,
                   std::initializer_list<std::string_view> not_figures) {
  Diagnostics& diagnostics = reader.diagnostics();
  const ConfigNode* source = reader.find_node("source");
  if (!source || !source->is_map()) {
    diagnostics.error(source ? source->at : root.at,
                      "the file needs 'source', a map from each key to where its figure is from");
    return;
  }
  for (const ConfigNode::Entry& entry : root.entries) {
    if (entry.key == "source" || std::ranges::count(not_figures, std::string_view(entry.key)))
      continue;
    const ConfigNode* citation = source->find(entry.key);
    if (citation && citation->is_scalar() && !citation->text.empty()) continue;
    diagnostics.error(
        entry.key_at, fmt::format("{} has no source", in_quotes(entry.key)),
        fmt::format("add '{}: where the figure is from' under 'source'", printable(entry.key, 64)));
  }
  for (const ConfigNode::Entry& entry : source->entries) {
    if (root.find(entry.key)) continue;
    diagnostics.error(entry.key_at, fmt::format("a source for {}, which the file does not set",
                                                in_quotes(entry.key)));
  }
}

std::map<DType, FlopRate> read_peak(ConfigReader peak) {
  std::map<DType, FlopRate> rates;
  for (const DType type : kPeakTypes) {
    if (const auto rate = peak.find<FlopRate>(to_text(type))) rates[type] = rate->value;
  }
  peak.finish();
  return rates;
}

// "8.0" -> 80
int read_compute_capability(ConfigReader& reader) {
  const auto text = reader.required<std::string>("compute_capability");
  const std::string& word = text.value;
  const bool form = word.size() >= 3 && word.size() <= 4 && word[word.size() - 2] == '.' &&
                    word.find_first_not_of("0123456789.") == std::string::npos &&
                    word.find('.') == word.size() - 2;
  if (form) return std::stoi(word.substr(0, word.size() - 2)) * 10 + (word.back() - '0');
  if (!word.empty()) {
    reader.diagnostics().error(text.at,
                               fmt::format("compute_capability cannot be {}", in_quotes(word)),
                               "write it like 8.0 or 9.0");
  }
  return 0;
}

NicSpec read_nic(ConfigReader nic) {
  NicSpec spec;
  spec.count = static_cast<int>(nic.required<std::int64_t>("count", kSmallPositive).value);
  spec.bandwidth = nic.required<ByteRate>("bandwidth").value;
  spec.kind = nic.required<std::string>("kind").value;
  nic.finish();
  return spec;
}

// Loads hardware/<folder>/<name>.yaml.
std::shared_ptr<const SourceFile> open_data_file(const Named& named, std::string_view kind,
                                                 const std::string& folder,
                                                 Diagnostics& diagnostics) {
  const std::string path = fmt::format("{}/{}.yaml", folder, named.name);
  if (!is_data_name(named.name) || !file_exists(path)) {
    report_unknown_name(kind, named, list_data_names(folder, ".yaml"), diagnostics);
    return nullptr;
  }
  return read_source_file(path, named.at, diagnostics);
}

std::string stem(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.ends_with(".yaml") ? name.substr(0, name.size() - 5) : name;
}

std::string gpus_folder(const std::string& hardware_root) { return hardware_root + "/gpus"; }
std::string nodes_folder(const std::string& hardware_root) { return hardware_root + "/nodes"; }

}  // namespace

std::vector<std::string> gpu_names(const std::string& hardware_root) {
  return list_data_names(gpus_folder(hardware_root), ".yaml");
}

std::vector<std::string> node_names(const std::string& hardware_root) {
  return list_data_names(nodes_folder(hardware_root), ".yaml");
}

std::optional<GpuSpec> read_gpu(std::shared_ptr<const SourceFile> file, ReadContext& context) {
  const std::size_t errors_before = context.diagnostics.error_count();
  const std::optional<ConfigNode> root = parse_config(file, context.diagnostics);
  if (!root) return std::nullopt;
  ConfigReader reader(*root, "", context);
  GpuSpec gpu;
  gpu.name = stem(file->path);
  gpu.product = reader.required<std::string>("product").value;
  if (!reader.has("form_factor")) reader.required<std::string>("form_factor");
  const auto form = reader.find_choice<FormFactor>("form_factor", kFormFactors);
  gpu.form_factor = form.value_or(Located<FormFactor>{}).value;
  gpu.total_memory = reader.required<Bytes>("total_memory").value;
  gpu.compute_capability = read_compute_capability(reader);
  gpu.multiprocessors =
      static_cast<int>(reader.required<std::int64_t>("multiprocessors", kSmallPositive).value);
  gpu.peak = read_peak(reader.section("peak"));
  if (gpu.peak.empty()) reader.required<std::string>("peak");
  gpu.memory_bandwidth = reader.required<ByteRate>("memory_bandwidth").value;
  gpu.l2_cache = reader.required<Bytes>("l2_cache").value;
  gpu.nvlink = reader.required<ByteRate>("nvlink").value;
  gpu.pcie = reader.required<ByteRate>("pcie").value;
  gpu.cuda_context = reader.required<Bytes>("cuda_context").value;
  check_sources(reader, *root, {"product", "form_factor"});
  if (const ConfigNode* source = reader.find_node("source")) gpu.source = *source;
  reader.finish();
  if (context.diagnostics.error_count() > errors_before) return std::nullopt;
  return gpu;
}

std::optional<NodeSpec> read_node(std::shared_ptr<const SourceFile> file, ReadContext& context) {
  const std::size_t errors_before = context.diagnostics.error_count();
  const std::optional<ConfigNode> root = parse_config(file, context.diagnostics);
  if (!root) return std::nullopt;
  ConfigReader reader(*root, "", context);
  NodeSpec node;
  node.name = stem(file->path);
  node.product = reader.required<std::string>("product").value;
  node.gpu = reader.required_named("gpu");
  node.gpus = static_cast<int>(reader.required<std::int64_t>("gpus", kSmallPositive).value);
  if (!reader.has("interconnect")) reader.required<std::string>("interconnect");
  const auto interconnect = reader.find_choice<GpuInterconnect>("interconnect", kInterconnects);
  node.interconnect = interconnect.value_or(Located<GpuInterconnect>{}).value;
  node.host_memory = reader.required<Bytes>("host_memory").value;
  node.cpu_cores =
      static_cast<int>(reader.required<std::int64_t>("cpu_cores", kSmallPositive).value);
  if (reader.has("nic")) node.nic = read_nic(reader.section("nic"));
  if (const auto rate = reader.find<ByteRate>("pcie_per_gpu")) node.pcie_per_gpu = rate->value;
  if (const auto gpus = reader.find<std::int64_t>("gpus_per_pcie_switch", kSmallPositive)) {
    node.gpus_per_pcie_switch = static_cast<int>(gpus->value);
  }
  if (const auto rate = reader.find<ByteRate>("storage_read")) node.storage_read = rate->value;
  if (const auto rate = reader.find<ByteRate>("storage_write")) node.storage_write = rate->value;
  if (const auto cost = reader.find<Duration>("operator_overhead")) {
    node.operator_overhead = cost->value;
  }
  check_sources(reader, *root, {"product", "gpu"});
  if (const ConfigNode* source = reader.find_node("source")) node.source = *source;
  reader.finish();
  if (context.diagnostics.error_count() > errors_before) return std::nullopt;
  return node;
}

std::optional<GpuSpec> read_gpu(const Named& named, const std::string& hardware_root,
                                Diagnostics& diagnostics) {
  ReadContext context{diagnostics};
  const auto file = open_data_file(named, "GPU", gpus_folder(hardware_root), diagnostics);
  return file ? read_gpu(file, context) : std::nullopt;
}

std::optional<NodeSpec> read_node(const Named& named, const std::string& hardware_root,
                                  Diagnostics& diagnostics) {
  ReadContext context{diagnostics};
  const auto file = open_data_file(named, "node", nodes_folder(hardware_root), diagnostics);
  return file ? read_node(file, context) : std::nullopt;
}

}  // namespace sim
