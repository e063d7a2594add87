// What one rank class is lowered with, and what passes between phases: weights as loaded, the
// trainable state that an optimizer updates, a state dict on its way to disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/program/builder.h"
#include "sim/program/libraries/facts.h"
#include "sim/program/lower.h"
#include "sim/program/walker.h"
#include "sim/scenario/scenario.h"

namespace sim::program {

struct Optimizer;

// Weights and buffers between loading and wrapping: on the host or on the device, one entry each.
struct LoadedModel {
  IdVector<plan::ParameterId, TensorId> device;  // none: still on the host
  // Weights that the strategy took over while the model was built: neither on device nor host here.
  IdVector<plan::ParameterId, bool> taken;
  IdVector<plan::ParameterId, HostBufferId> host;
  IdVector<plan::BufferId, TensorId> buffers;
  IdVector<plan::BufferId, HostBufferId> host_buffers;
  // What belongs to a packed weight on the device: scales, tables.
  IdVector<plan::ParameterId, std::vector<TensorId>> scales;
};

// One tensor that the optimizer updates, and what belongs to it on this rank.
struct ParameterState {
  ScopeId scope;
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  bool flat = false;                     // a flat parameter of several weights
  TensorId parameter, gradient;          // gradient: none between zero_grad and the next backward
  std::vector<TensorId> optimizer;       // made lazily by the first step
  std::vector<HostBufferId> paged = {};  // those of its states that lie in managed memory
};

// An entry of a state dict: on the device, on the host, or neither (this rank does not keep it).
struct StateDictEntry {
  ScopeId scope;  // the dotted name
  Bytes bytes;
  TensorId device;
  HostBufferId host;
};
using StateDict = std::vector<StateDictEntry>;

struct Session {
  const Scenario& scenario;
  const plan::Plan& plan;
  const Software& software;
  const TorchFacts& torch;
  Builder& builder;
  GroupId world;
  std::int64_t world_size = 1;
  bool first_rank = true;        // rank 0: the one that saves
  std::optional<Bytes> outside;  // device memory outside the allocator as observed; else modelled
  bool communicator_made = false;
  std::vector<HostBufferId> host_model;
  const Optimizer* optimizer = nullptr;

  // NCCL's communicator comes with the first collective, unless the report's own figures include
  // it.
  void use_communicator();
  std::int64_t shards() const { return world_size; }
};

}  // namespace sim::program
