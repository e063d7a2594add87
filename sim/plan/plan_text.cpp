#include "sim/plan/plan_text.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/base/units_text.h"

namespace sim::plan {

namespace {

std::string type_text(const TensorType& t) {
  const std::span sizes(t.shape.sizes.data(), static_cast<std::size_t>(t.shape.rank));
  return fmt::format("{}[{}]", sim::to_text(t.dtype), fmt::join(sizes, ","));
}

std::string operand_text(const LayerGraph& g, const Operand& o) {
  switch (o.kind) {
    case Operand::Kind::value:
      return fmt::format("%{}", o.index);
    case Operand::Kind::parameter:
      return g.parameters[o.parameter()].name;
    case Operand::Kind::buffer:
      return g.buffers[BufferId{o.index}].name;
  }
  return {};
}

void append_values(std::string& out, const char* what, std::span<const ValueId> values) {
  if (values.empty()) return;
  out += what;
  for (ValueId v : values) fmt::format_to(std::back_inserter(out), " %{}", v.value);
}

void append_node(std::string& out, const LayerGraph& g, const OpNode& node) {
  out += "    ";
  const auto outputs = LayerGraph::slice(g.outputs, node.outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value& v = g.values[outputs[i]];
    fmt::format_to(std::back_inserter(out), "{}%{} {}", i > 0 ? ", " : "", outputs[i].value,
                   type_text(v.type));
    if (v.storage != outputs[i])
      fmt::format_to(std::back_inserter(out), " of %{}", v.storage.value);
  }
  fmt::format_to(std::back_inserter(out), " = {}(", node.name);
  bool first = true;
  for (const Operand& o : LayerGraph::slice(g.operands, node.inputs)) {
    fmt::format_to(std::back_inserter(out), "{}{}", first ? "" : ", ", operand_text(g, o));
    first = false;
  }
  out += ")";
  append_values(out, "  saves", LayerGraph::slice(g.saved, node.saved));
  append_values(out, "  drops", LayerGraph::slice(g.dropped, node.dropped));
  out += "\n";
}

// Blocks are alike when their nodes are, but for the numbers.
bool alike(const LayerGraph& g, const Block& a, const Block& b) {
  if (a.nodes.size() != b.nodes.size() || a.parameters.size() != b.parameters.size()) return false;
  for (std::uint32_t i = 0; i < a.nodes.size(); ++i) {
    const OpNode& x = g.nodes[OpNodeId{a.nodes.begin + i}];
    const OpNode& y = g.nodes[OpNodeId{b.nodes.begin + i}];
    if (x.name != y.name || x.kernel != y.kernel || x.saved.size() != y.saved.size()) return false;
  }
  return true;
}

}  // namespace

std::string to_text(const Plan& plan, bool full) {
  const LayerGraph& g = plan.graph;
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "parameters {} ({} tensors)\n", parameter_count(g), g.parameters.size());
  out += "mesh";
  for (const Axis& axis : plan.mesh.axes) fmt::format_to(to, " {}={}", axis.name, axis.size);
  fmt::format_to(to, "\nrecompute {}\n",
                 !plan.recompute            ? "none"
                 : plan.recompute_reentrant ? "blocks, reentrant"
                                            : "blocks");
  fmt::format_to(to, "blocks {}\n", g.blocks.size());

  std::uint32_t next = 0;
  const auto nodes_until = [&](std::uint32_t end) {
    if (next < end) out += "outside blocks\n";
    for (; next < end; ++next) append_node(out, g, g.nodes[OpNodeId{next}]);
  };
  for (std::uint32_t i = 0; i < g.blocks.size();) {
    const Block& block = g.blocks[BlockId{i}];
    nodes_until(block.nodes.begin);
    std::uint32_t same = 1;
    while (!full && i + same < g.blocks.size() && alike(g, block, g.blocks[BlockId{i + same}]))
      ++same;
    fmt::format_to(to, "block {} {}", g.scopes[block.scope].path, block.class_name);
    if (same > 1) fmt::format_to(to, " and {} more like it", same - 1);
    out += "\n";
    for (std::uint32_t p = block.parameters.begin; p < block.parameters.end; ++p) {
      const Parameter& parameter = g.parameters[ParameterId{p}];
      fmt::format_to(to, "    parameter {} {}\n", parameter.name, type_text(parameter.type));
    }
    for (; next < block.nodes.end; ++next) append_node(out, g, g.nodes[OpNodeId{next}]);
    next = g.blocks[BlockId{i + same - 1}].nodes.end;
    i += same;
  }
  nodes_until(static_cast<std::uint32_t>(g.nodes.size()));
  return out;
}

}  // namespace sim::plan
