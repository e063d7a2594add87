// A model as published: the config.json of Hugging Face, unread but for its architecture. Each
// architecture (plan/architectures/) reads its own fields, so there is no union of all models'
// fields.
#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/scenario/config_node.h"

namespace sim {

struct ModelSpec {
  std::string name;    // as the scenario names it: a folder of models/ or a path
  std::string path;    // of its config.json
  Named architecture;  // `architectures[0]`, e.g. LlamaForCausalLM; else derived from `model_type`
  ConfigNode config;
};

// `named` is the name of a folder below `models_root`, or a path (absolute, or relative to the
// folder of the file that names it) of a config.json or of a folder that holds one.
std::optional<ModelSpec> read_model(const Named& named, const std::string& models_root,
                                    Diagnostics& diagnostics);

}  // namespace sim
