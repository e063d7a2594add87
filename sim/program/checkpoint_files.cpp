#include "sim/program/checkpoint_files.h"

#include <algorithm>

#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

using plan::Parameter;
using plan::ParameterId;

// config.json says in which type the weights were saved; 16 bits where it does not.
DType file_type(const Scenario& scenario) {
  if (const auto& given = scenario.job.loading.file_dtype) return given->value;
  for (const char* key : {"torch_dtype", "dtype"}) {
    const ConfigNode* node = scenario.model.config.find(key);
    if (node == nullptr || !node->is_scalar()) continue;
    if (node->text == "float32") return DType::f32;
    if (node->text == "bfloat16") return DType::bf16;
  }
  return DType::f16;
}

}  // namespace

std::string name_in_file(const Parameter& parameter) {
  constexpr std::string_view kWrapper = ".base_layer";
  std::string name = parameter.name;
  if (const auto at = name.find(kWrapper); at != std::string::npos) name.erase(at, kWrapper.size());
  return name;
}

Bytes CheckpointFiles::bytes(const plan::LayerGraph& graph, const Shard& shard) const {
  Bytes total{0};
  for (ParameterId p : shard) total += TensorType{dtype, graph.parameters[p].matrix}.bytes();
  return total;
}

// save_pretrained's shard_checkpoint (transformers modeling_utils.py); safe_open.keys() sorts
// (safetensors bindings/python/src/lib.rs).
CheckpointFiles checkpoint_files(const Scenario& scenario, const plan::LayerGraph& graph,
                                 const LoadingFacts& facts) {
  CheckpointFiles files;
  files.dtype = file_type(scenario);
  Bytes open{0};
  for (ParameterId p{0}; p.value < graph.parameters.size(); ++p.value) {
    const Parameter& parameter = graph.parameters[p];
    if (parameter.origin != Parameter::Origin::checkpoint) continue;
    const Bytes bytes = TensorType{files.dtype, parameter.matrix}.bytes();
    if (files.shards.empty() || open + bytes > facts.shard) {
      files.shards.emplace_back();
      open = Bytes{0};
    }
    files.shards.back().push_back(p);
    open += bytes;
  }
  if (!facts.safetensors) return files;
  for (Shard& shard : files.shards) {
    std::ranges::sort(shard, {}, [&](ParameterId p) { return name_in_file(graph.parameters[p]); });
  }
  return files;
}

}  // namespace sim::program
