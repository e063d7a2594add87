// The files of a published checkpoint: which weights stand in which, in the order in which a loader
// walks them.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/plan/layer_graph.h"
#include "sim/program/libraries/facts.h"
#include "sim/scenario/scenario.h"

namespace sim::program {

using Shard = std::vector<plan::ParameterId>;
struct CheckpointFiles {
  DType dtype = DType::f16;
  std::vector<Shard> shards;
  Bytes bytes(const plan::LayerGraph& graph, const Shard& shard) const;
};

// Weights in module order go to the open file until the next would exceed its limit; a safetensors
// file then lists them by name.
CheckpointFiles checkpoint_files(const Scenario& scenario, const plan::LayerGraph& graph,
                                 const LoadingFacts& facts);

// The weight's name in the file: without what adapters put around it.
std::string name_in_file(const plan::Parameter& parameter);

}  // namespace sim::program
