// The order in which torch.nn.Module._apply (to, half, cuda) visits a model's tensors.
#pragma once

#include <vector>

#include "sim/plan/layer_graph.h"

namespace sim::plan {

struct ModuleTensor {  // one of the two
  ParameterId parameter;
  BufferId buffer;
};

// Children before the parameters of the module that holds them, which come before its buffers.
std::vector<ModuleTensor> children_first(const LayerGraph& graph);

}  // namespace sim::plan
