// Plan: what is computed where. Scenario + implementations -> layer graph, mesh of ranks, stages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/plan/implementation.h"
#include "sim/plan/layer_graph.h"
#include "sim/scenario/scenario.h"

namespace sim::plan {

// A named axis of the device mesh (dp, tp, pp, ...); rank = mixed-radix number, last axis fastest.
struct Axis {
  std::string name;
  std::int64_t size = 1;
};

struct DeviceMesh {
  std::vector<Axis> axes;
  std::int64_t world_size() const;
};

struct Plan {
  LayerGraph graph;
  DeviceMesh mesh;
  Implementations implementations;
  bool recompute = false;  // activation checkpointing around every block
  bool recompute_reentrant = true;
};

// Diagnoses an architecture it does not know and config fields that contradict one another. Files
// each field that config.json leaves to its class's default.
std::optional<Plan> make_plan(const Scenario& scenario, const Implementations& implementations,
                              Assumptions& assumptions, Diagnostics& diagnostics);

// The same complaints about the model alone, for a scenario whose job cannot be planned.
void check_model(const ModelSpec& model, Diagnostics& diagnostics);

// The parameters of a model alone: count and bytes without building a micro-batch.
std::int64_t parameter_count(const LayerGraph& graph);

}  // namespace sim::plan
