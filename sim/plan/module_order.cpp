#include "sim/plan/module_order.h"

#include <string_view>

namespace sim::plan {

namespace {

bool is_below(std::string_view path, std::string_view module) {
  return path.size() > module.size() && path.starts_with(module) && path[module.size()] == '.';
}

}  // namespace

// Parameters stand in module order, so a module that has both parameters and children lists its own
// first, and its children right behind: they change places.
std::vector<ModuleTensor> children_first(const LayerGraph& graph) {
  std::vector<ModuleTensor> order;
  const auto path = [&](std::uint32_t p) -> std::string_view {
    return graph.scopes[graph.parameters[ParameterId{p}].scope].path;
  };
  const auto count = static_cast<std::uint32_t>(graph.parameters.size());
  BufferId buffer{0};
  const auto buffers_before = [&](std::uint32_t parameter) {
    for (; buffer.value < graph.buffers.size() && graph.buffers[buffer].after <= parameter;
         ++buffer.value) {
      order.push_back({{}, buffer});
    }
  };
  for (std::uint32_t p = 0; p < count;) {
    buffers_before(p);
    std::uint32_t own = p, below = p;
    while (own < count && path(own) == path(p)) ++own;
    for (below = own; below < count && is_below(path(below), path(p)); ++below) {
      order.push_back({ParameterId{below}, {}});
    }
    for (std::uint32_t i = p; i < own; ++i) order.push_back({ParameterId{i}, {}});
    p = below;
  }
  buffers_before(count);
  return order;
}

}  // namespace sim::plan
