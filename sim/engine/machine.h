// The device models of one cluster. Description only: state is the engine's.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/compute/kernel_timer.h"
#include "sim/memory/allocator_profile.h"
#include "sim/network/topology.h"
#include "sim/scenario/hardware_spec.h"

namespace sim::engine {

struct GpuModel {
  Bytes total;           // what cudaMemGetInfo reports
  Bytes used_by_others;  // by other processes of that card
};

struct HostModel {
  Bytes capacity;  // of the node, or the container limit where lower
};

struct Machine {
  ClusterSpec cluster;
  GpuModel gpu;  // all cards are alike
  HostModel host;
  IdVector<RankId, network::Place> place_of;  // by rank
  memory::AllocatorProfile allocator;         // of the torch release
  memory::AllocatorSettings allocator_settings;
  std::optional<Bytes> allowed;  // memory fraction as bytes
  std::shared_ptr<const compute::KernelTimer> timer;
  std::shared_ptr<const network::Topology> topology;
};

}  // namespace sim::engine
