// An architecture: reads its own fields of config.json, registers the parameters and runs one
// micro-batch through a GraphBuilder. One file each; listed in catalog.cpp.
#pragma once

#include <optional>
#include <string_view>

#include "sim/base/catalog.h"
#include "sim/plan/graph_builder.h"
#include "sim/scenario/model_spec.h"

namespace sim {
struct ReadContext;
}

namespace sim::plan {

struct Architecture {
  std::string_view name;  // as in config.json's `architectures`
  std::string_view description;
  // The loss, or an empty Var and diagnostics. `vocab_size`: after the script resized the
  // embeddings. Files each default of the configuration class that it takes.
  Var (*build)(const ModelSpec& model, std::optional<std::int64_t> vocab_size, GraphBuilder& graph,
               ReadContext& context);
};

const Catalog<Architecture>& architecture_catalog();

}  // namespace sim::plan
