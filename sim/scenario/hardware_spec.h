// Hardware as data: hardware/gpus, nodes, fabrics, clusters, one YAML file each, every figure with
// its source. Descriptions only; the device models of floor 2 give them behaviour.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/scenario/config_node.h"

namespace sim {

struct ReadContext;

enum class FormFactor : std::uint8_t { sxm, pcie };

struct GpuSpec {
  std::string name;     // the file's name: a100-sxm4-40gb
  std::string product;  // NVIDIA A100-SXM4-40GB
  FormFactor form_factor = FormFactor::sxm;
  Bytes total_memory;              // what cudaMemGetInfo reports; the OOM text prints it
  int compute_capability = 0;      // 80 = 8.0, 90 = 9.0
  int multiprocessors = 0;         // SMs
  std::map<DType, FlopRate> peak;  // dense matrix rates: bf16, fp16, tf32, fp32, fp64
  ByteRate memory_bandwidth;
  Bytes l2_cache;
  ByteRate nvlink;     // per direction, all links together; 0 = none. PCIe cards: with bridges
  ByteRate pcie;       // per direction
  Bytes cuda_context;  // device memory of a process with a context and lazily loaded kernels
  ConfigNode source;   // citations by field
};

enum class GpuInterconnect : std::uint8_t { nvswitch, nvlink_mesh, nvlink_pairs, pcie };

struct NicSpec {
  int count = 0;       // per node
  ByteRate bandwidth;  // per NIC and direction
  std::string kind;    // infiniband, roce, efa, ethernet
};

struct NodeSpec {
  std::string name;
  std::string product;
  Named gpu;  // hardware/gpus/
  int gpus = 0;
  GpuInterconnect interconnect = GpuInterconnect::pcie;
  Bytes host_memory;
  int cpu_cores = 0;
  NicSpec nic;
  ByteRate pcie_per_gpu;  // host to device, per direction; 0 = the GPU's own figure
  int gpus_per_pcie_switch = 1;
  ByteRate storage_read;  // local disk; 0 = unknown
  ByteRate storage_write;
  Duration
      operator_overhead{};  // host time of Python and PyTorch for one eager operator; 0 = unknown
  ConfigNode source;
};

struct ClusterSpec {
  NodeSpec node;
  GpuSpec gpu;
  Located<std::int64_t> nodes{1, {}};
  Located<std::int64_t> processes_per_node{1, {}};
  std::vector<int> visible_devices;             // CUDA_VISIBLE_DEVICES; empty = all in order
  Bytes host_memory;                            // of one node
  std::optional<Bytes> container_memory_limit;  // cgroup limit of one node's job
  std::int64_t world_size() const { return nodes.value * processes_per_node.value; }
};

// `named` is the name of a file of hardware/gpus or hardware/nodes, without `.yaml`.
std::optional<GpuSpec> read_gpu(const Named& named, const std::string& hardware_root, Diagnostics&);
std::optional<NodeSpec> read_node(const Named& named, const std::string& hardware_root,
                                  Diagnostics&);

// The same from a file already in memory.
std::optional<GpuSpec> read_gpu(std::shared_ptr<const SourceFile> file, ReadContext& context);
std::optional<NodeSpec> read_node(std::shared_ptr<const SourceFile> file, ReadContext& context);

// The names that can be used, sorted.
std::vector<std::string> gpu_names(const std::string& hardware_root);
std::vector<std::string> node_names(const std::string& hardware_root);

// `cluster:` of a scenario. nullopt where the node or the GPU cannot be read.
std::optional<ClusterSpec> read_cluster(const ConfigNode& node, const std::string& hardware_root,
                                        ReadContext& context);

}  // namespace sim
