// Small programs written by hand, and a machine to run them on.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/compute/kernels/kinds.h"
#include "sim/engine/simulate.h"
#include "sim/memory/allocator_profile.h"

namespace sim::engine {

struct HandProgram {
  program::Program program;
  StreamRole stream = StreamRole::compute;  // of the ops that follow
  ScopeId scope;

  template <class Body>
  HandProgram& add(Body body) {
    program.ops.push_back({body, scope, stream});
    return *this;
  }
  HandProgram& on(StreamRole role) {
    stream = role;
    return *this;
  }
  HandProgram& in(const std::string& name) {
    scope = program.scopes.push_back(name);
    return *this;
  }
  HandProgram& phase(const std::string& name) {
    return add(program::BeginPhase{program.phases.push_back(name)});
  }
  program::TensorId tensor(Bytes bytes, MemoryClass memory_class = MemoryClass::temporaries) {
    program::TensorInfo info;
    info.bytes = bytes;
    info.memory_class = memory_class;
    info.scope = scope;
    return program.tensors.push_back(info);
  }
  HandProgram& alloc(program::TensorId id) { return add(program::Alloc{id}); }
  HandProgram& free(program::TensorId id) { return add(program::Free{id}); }
  // A kernel that writes `bytes`.
  program::KernelId kernel(Bytes bytes) {
    return program.kernels.push_back(
        {&compute::kFill, {}, {{DType::u8, {bytes.count}}}, false, false});
  }
  HandProgram& launch(program::KernelId id) { return add(program::Launch{id}); }
  HandProgram& work(Duration duration) { return add(program::HostWork{duration}); }
  program::CollectiveId collective(CollectiveKind kind, Bytes bytes, GroupId group = GroupId{0}) {
    return program.collectives.push_back({kind, group, bytes, scope});
  }
  HandProgram& call(program::CollectiveId id) { return add(program::Collective{id}); }
  program::HostBufferId buffer(Bytes bytes, HostMemoryKind kind = HostMemoryKind::anonymous) {
    return program.host_buffers.push_back({bytes, kind, scope, {}});
  }
  program::EventId event() { return program::EventId{program.events++}; }
  HandProgram& sync() { return add(program::Synchronize{}); }
};

// `gpus` A100-like cards with `total` memory per node and NVSwitch between them.
inline Machine hand_machine(std::uint32_t ranks, Bytes total = 1_GiB, std::uint32_t gpus = 8,
                            const std::string& torch = "2.0.1") {
  Machine machine;
  Diagnostics diagnostics;
  ClusterSpec& cluster = machine.cluster;
  cluster.node.gpus = static_cast<int>(gpus);
  cluster.node.interconnect = GpuInterconnect::nvswitch;
  cluster.node.nic = {8, 200_Gbps, "infiniband"};
  cluster.gpu.nvlink = 300_GBps;
  cluster.gpu.pcie = 32_GBps;
  cluster.gpu.memory_bandwidth = 1000_GBps;
  cluster.nodes.value = (ranks + gpus - 1) / gpus;
  cluster.processes_per_node.value = gpus;
  machine.gpu.total = total;
  machine.host.capacity = 1_GiB;
  for (std::uint32_t r = 0; r < ranks; ++r) machine.place_of.push_back({r / gpus, r % gpus});
  machine.allocator = *memory::find_allocator_profile({torch, {}}, diagnostics);
  machine.timer = std::make_shared<compute::KernelTimer>(cluster.gpu);
  machine.topology =
      std::make_shared<network::Topology>(network::Topology::make(cluster, diagnostics));
  return machine;
}

// All ranks run the first program unless `program_of` says otherwise; group 0 is the world.
inline program::Workload hand_workload(std::vector<program::Program> programs, std::uint32_t ranks,
                                       const std::vector<std::uint32_t>& program_of = {}) {
  program::Workload workload;
  workload.programs = std::move(programs);
  program::Group world{"world", {}};
  for (std::uint32_t r = 0; r < ranks; ++r) {
    workload.program_of.push_back(program_of.empty() ? 0 : program_of[r]);
    world.ranks.push_back(RankId{r});
  }
  workload.groups.push_back(world);
  return workload;
}

inline Timeline run_one(const HandProgram& hand, Bytes total = 1_GiB,
                        const SimulateOptions& options = {}) {
  return simulate(hand_workload({hand.program}, 1), hand_machine(1, total), options);
}

}  // namespace sim::engine
