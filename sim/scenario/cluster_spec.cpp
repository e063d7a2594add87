// `cluster:` of a scenario, declared in hardware_spec.h.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/text.h"
#include "sim/base/units_text.h"
#include "sim/scenario/config_reader.h"
#include "sim/scenario/hardware_spec.h"
#include "sim/scenario/interconnect_words.h"

namespace sim {
namespace {

// The parts of "7, 6,5", each with its place.
std::vector<ConfigNode> split_list(const ConfigNode& scalar) {
  std::vector<ConfigNode> parts;
  const std::string& text = scalar.text;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    ConfigNode part = scalar;
    part.quoted = false;
    part.text = text.substr(begin, end - begin);
    const std::size_t blanks = std::min(part.text.find_first_not_of(' '), part.text.size());
    part.text.erase(0, blanks);
    part.text.erase(part.text.find_last_not_of(' ') + 1);
    part.at.column += static_cast<int>(begin + blanks) + (scalar.quoted ? 1 : 0);
    part.at.length = static_cast<int>(std::max<std::size_t>(part.text.size(), 1));
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

// What CUDA_VISIBLE_DEVICES may hold beside numbers. False and an error then.
bool check_is_numbered(const ConfigNode& device, Diagnostics& diagnostics) {
  if (!device.is_scalar()) return true;
  if (device.text == "-1") {
    diagnostics.error(device.at, "device -1 hides itself and every device behind it",
                      "CUDA_VISIBLE_DEVICES=-1 means that no GPU is visible: name those that are");
    return false;
  }
  if (!device.text.starts_with("GPU-") && !device.text.starts_with("MIG-")) return true;
  diagnostics.error(device.at, "a device is given by its number here, not by its UUID",
                    "nvidia-smi -L lists the number of each UUID");
  return false;
}

// CUDA_VISIBLE_DEVICES as a list or as the variable is written. Each device exists and stands once.
std::vector<int> read_visible_devices(ConfigReader& cluster, const NodeSpec& node) {
  const ConfigNode* list = cluster.find_node("visible_devices");
  if (!list) return {};
  Diagnostics& diagnostics = cluster.diagnostics();
  if (list->is_map() || (list->is_sequence() && list->items.empty())) {
    diagnostics.error(
        list->at,
        fmt::format("cluster.visible_devices must be a list of device numbers, not {}",
                    list->is_map() ? "a map" : "an empty list"),
        "write [0, 1, 2, 3], or leave it out to see all");
    return {};
  }
  std::vector<int> devices;
  std::vector<Span> places;
  for (const ConfigNode& item : list->is_scalar() ? split_list(*list) : list->items) {
    if (!check_is_numbered(item, diagnostics)) continue;
    const auto device =
        read_value<std::int64_t>(item, {"a device of cluster.visible_devices"}, diagnostics);
    if (!device) continue;
    if (*device < 0 || *device >= node.gpus) {
      diagnostics.error(
          item.at, fmt::format("there is no device {} in a node of {} GPUs", *device, node.gpus),
          fmt::format("devices are numbered from 0 to {}", node.gpus - 1));
      continue;
    }
    const auto first = std::find(devices.begin(), devices.end(), static_cast<int>(*device));
    if (first != devices.end()) {
      Diagnostic& error =
          diagnostics.error(item.at, fmt::format("device {} is listed twice", *device));
      error.notes.push_back({Severity::note,
                             places[static_cast<std::size_t>(first - devices.begin())],
                             "it is first listed here",
                             {},
                             {}});
      continue;
    }
    devices.push_back(static_cast<int>(*device));
    places.push_back(item.at);
  }
  return devices;
}

// A node said by its GPUs alone: `gpu: a100-sxm4-80gb, gpus: 4`.
NodeSpec read_plain_node(ConfigReader& cluster, const GpuSpec& gpu) {
  NodeSpec node;
  node.gpu = {gpu.name, cluster.at()};
  node.gpus =
      static_cast<int>(cluster.optional<std::int64_t>("gpus", 1, "one GPU", kSmallPositive).value);
  node.name = fmt::format("{} x {}", node.gpus, gpu.name);
  node.product = node.name;
  // SXM boards of more than four GPUs have NVSwitches, those of four are a mesh (HGX A100 data
  // sheet).
  const GpuInterconnect usual = gpu.form_factor == FormFactor::pcie ? GpuInterconnect::pcie
                                : node.gpus > 4                     ? GpuInterconnect::nvswitch
                                                                    : GpuInterconnect::nvlink_mesh;
  node.interconnect = usual;
  for (const Choice<GpuInterconnect>& choice : kInterconnects) {
    if (choice.value == usual && !cluster.has("interconnect")) {
      cluster.assume("interconnect", std::string(choice.word), "usual for this GPU and number");
    }
  }
  if (const auto said = cluster.find_choice<GpuInterconnect>("interconnect", kInterconnects)) {
    node.interconnect = said->value;
  }
  if (!cluster.has("host_memory")) {
    node.host_memory = 1024_GiB;
    cluster.assume("host_memory", to_text_exact(node.host_memory),
                   "usual for servers of eight GPUs; a named node has its own");
  }
  return node;
}

std::optional<NodeSpec> find_node(ConfigReader& cluster, const std::string& hardware_root,
                                  std::optional<GpuSpec>& gpu) {
  const std::optional<Named> node_name = cluster.find_named("node");
  const std::optional<Named> gpu_name = cluster.find_named("gpu");
  Diagnostics& diagnostics = cluster.diagnostics();
  if (node_name && gpu_name) {
    diagnostics.error(gpu_name->at, "cluster says both 'node' and 'gpu'",
                      "a node has its own GPUs; keep one of them");
    return std::nullopt;
  }
  if (!node_name && !gpu_name) {
    if (cluster.is_map() && !cluster.has("node") && !cluster.has("gpu")) {
      diagnostics.error(cluster.at(), "cluster says neither 'node' nor 'gpu'",
                        "nodes: " + join(node_names(hardware_root)));
    }
    return std::nullopt;
  }
  if (gpu_name) {
    gpu = read_gpu(*gpu_name, hardware_root, diagnostics);
    return gpu ? std::optional(read_plain_node(cluster, *gpu)) : std::nullopt;
  }
  std::optional<NodeSpec> node = read_node(*node_name, hardware_root, diagnostics);
  if (node) gpu = read_gpu(node->gpu, hardware_root, diagnostics);
  return node;
}

constexpr std::int64_t kMostRanks = 1 << 20;  // five times the largest training cluster known

// How many processes a node can hold: one for each GPU that it shows.
void read_processes(ConfigReader& reader, ClusterSpec& cluster, bool devices_known) {
  const auto shown = static_cast<std::int64_t>(cluster.visible_devices.empty()
                                                   ? static_cast<std::size_t>(cluster.node.gpus)
                                                   : cluster.visible_devices.size());
  cluster.processes_per_node = reader.optional<std::int64_t>(
      "processes_per_node", shown, "one process for each visible GPU", kSmallPositive);
  if (cluster.world_size() > kMostRanks) {
    reader.diagnostics().error(
        reader.has("nodes") ? cluster.nodes.at : cluster.processes_per_node.at,
        fmt::format("{} nodes of {} processes are more than {} processes",
                    group_digits(cluster.nodes.value), cluster.processes_per_node.value,
                    group_digits(kMostRanks)));
  }
  if (!devices_known || cluster.processes_per_node.value <= shown) return;
  const bool masked = !cluster.visible_devices.empty();
  reader.diagnostics().error(
      cluster.processes_per_node.at,
      fmt::format("{} processes on a node that {} {} GPUs", cluster.processes_per_node.value,
                  masked ? "shows only" : "has only", shown),
      "each process needs a GPU of its own");
}

void read_memory(ConfigReader& reader, ClusterSpec& cluster) {
  cluster.host_memory = cluster.node.host_memory;
  if (const auto memory = reader.find<Bytes>("host_memory", kHostMemory))
    cluster.host_memory = memory->value;
  const auto limit = reader.find<Bytes>("container_memory_limit", kHostMemory);
  if (!limit) return;
  cluster.container_memory_limit = limit->value;
  if (limit->value <= cluster.host_memory) return;
  reader.diagnostics().warning(
      limit->at,
      fmt::format("the limit is above the host's memory of {}", to_text_exact(cluster.host_memory)),
      "the host's own memory runs out first");
}

// Server CPUs of the A100's years run Hugging Face models at about 20 us an operator: 1,500 kernels
// a token of an eager 7B in about 30 ms. A node file that was measured has its own figure.
constexpr Duration kOperatorOverhead = 20_us;

void read_operator_overhead(ConfigReader& reader, ClusterSpec& cluster) {
  Duration& overhead = cluster.node.operator_overhead;
  if (const auto said = reader.find<Duration>("operator_overhead")) {
    overhead = said->value;
  } else if (overhead == Duration{}) {
    overhead = kOperatorOverhead;
    reader.assume("operator_overhead", "20 us",
                  "host time of one eager operator; not measured on this node");
  }
}

}  // namespace

std::optional<ClusterSpec> read_cluster(const ConfigNode& node, const std::string& hardware_root,
                                        ReadContext& context) {
  ConfigReader reader(node, "cluster", context);
  for (const std::string_view key :
       {"gpus", "interconnect", "visible_devices", "processes_per_node", "host_memory",
        "container_memory_limit", "operator_overhead"}) {
    reader.find_node(key);  // known, also where the node itself cannot be read
  }
  ClusterSpec cluster;
  cluster.nodes = reader.optional<std::int64_t>("nodes", 1, "one node", kSmallPositive);
  std::optional<GpuSpec> gpu;
  std::optional<NodeSpec> found = find_node(reader, hardware_root, gpu);
  if (found && gpu) {
    cluster.node = std::move(*found);
    cluster.gpu = std::move(*gpu);
    for (const std::string_view key : {"gpus", "interconnect"}) {
      const ConfigNode* extra = reader.has("node") ? reader.find_node(key) : nullptr;
      if (extra) {
        context.diagnostics.error(extra->at, fmt::format("cluster.{} is part of the node", key),
                                  "it goes with 'gpu' in place of 'node'");
      }
    }
    const std::size_t errors_before = context.diagnostics.error_count();
    cluster.visible_devices = read_visible_devices(reader, cluster.node);
    read_processes(reader, cluster, context.diagnostics.error_count() == errors_before);
    read_memory(reader, cluster);
    read_operator_overhead(reader, cluster);
  }
  reader.finish();
  if (!found || !gpu) return std::nullopt;
  return cluster;
}

}  // namespace sim
