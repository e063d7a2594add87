// A model as published: the config.json of Hugging Face, unread but for its architecture. Each
// architecture (plan/architectures/) reads its own fields, so there is no union of all models'
// fields.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/scenario/config_node.h"

namespace sim {

struct ModelSpec {
  std::string name;    // as the scenario names it: a folder of models/ or a path
  std::string path;    // of its config.json
  Named architecture;  // `architectures[0]`, e.g. LlamaForCausalLM; else derived from `model_type`
  ConfigNode config;
};

// `named` is the name of a folder below `models_root` (an organisation in front of it, as on the
// hub, is accepted), or a path (absolute, or relative to the folder of the file that names it) of a
// config.json or of a folder that holds one.
std::optional<ModelSpec> read_model(const Named& named, const std::string& models_root,
                                    Diagnostics& diagnostics);

// The same from a config.json already in memory.
std::optional<ModelSpec> read_model(std::string name, std::shared_ptr<const SourceFile> file,
                                    Diagnostics& diagnostics);

// The folders below `models_root` that hold a config.json, sorted.
std::vector<std::string> model_names(const std::string& models_root);

}  // namespace sim
