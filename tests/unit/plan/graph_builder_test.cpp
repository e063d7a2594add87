#include <algorithm>
#include <vector>

#include "sim/plan/graph_builder.h"
#include "sim/plan/operators/operators.h"

#include "tests/support/catch.h"

namespace sim::plan {
namespace {

std::vector<std::uint32_t> dropped(const LayerGraph& g, std::uint32_t node) {
  std::vector<std::uint32_t> ids;
  for (ValueId v : LayerGraph::slice(g.dropped, g.nodes[OpNodeId{node}].dropped))
    ids.push_back(v.value);
  return ids;
}

Implementations facts() {
  Implementations f;
  f.compute = DType::bf16;
  return f;
}

TEST_CASE("a variable's last reference is dropped after the operator issued last") {
  GraphBuilder g(facts(), DType::bf16);
  const Weight w = g.parameter("m", "weight", {8, 8});
  Var x = g.input({DType::bf16, {1, 4, 8}});
  Var h = matrix_product(g, x, w, std::nullopt);  // node 0, value 1
  Var kept = h;
  Var y = silu(g, std::move(h));  // node 1, value 2: `kept` still holds 1
  kept.reset();                   // after node 1
  Var z = add(g, y, y);           // node 2, value 3
  y.reset();
  x.reset();
  const LayerGraph graph = g.finish(std::move(z));
  CHECK(dropped(graph, 0).empty());
  CHECK(dropped(graph, 1) == std::vector<std::uint32_t>{1});
  CHECK(dropped(graph, 2) == std::vector<std::uint32_t>{2, 0});
}

TEST_CASE("autograd keeps what a derivative reads and nothing else") {
  GraphBuilder g(facts(), DType::bf16);
  const Weight w = g.parameter("m", "weight", {8, 8});
  Var x = g.input({DType::bf16, {1, 4, 8}});
  Var h = matrix_product(g, x, w, std::nullopt);
  Var a = silu(g, h);
  Var b = add(g, a, h);
  const LayerGraph graph = g.finish(std::move(b));
  const auto saved = [&](std::uint32_t n) {
    return LayerGraph::slice(graph.saved, graph.nodes[OpNodeId{n}].saved);
  };
  REQUIRE(saved(0).size() == 1);  // linear: its input, for the weight's gradient
  CHECK(saved(0)[0].value == 0);
  REQUIRE(saved(1).size() == 1);  // silu: its input
  CHECK(saved(1)[0].value == 1);
  CHECK(saved(2).empty());  // add: nothing
}

TEST_CASE("nothing is kept where no gradient flows") {
  GraphBuilder g(facts(), DType::bf16);
  Weight frozen = g.parameter("m", "weight", {8, 8});
  frozen.needs_grad = false;
  Var x = g.input({DType::bf16, {1, 4, 8}});
  Var h = silu(g, matrix_product(g, x, frozen, std::nullopt));
  const LayerGraph graph = g.finish(std::move(h));
  CHECK(graph.saved.empty());
  CHECK(graph.backward.empty());
}

TEST_CASE("a view shares the memory of what it views") {
  GraphBuilder g(facts(), DType::bf16);
  Var x = g.input({DType::bf16, {2, 8}});
  Var v = view(g, view(g, x, {16}), {4, 4});
  CHECK(v.shape() == Shape{4, 4});
  const ValueId x_id = x.id(), v_id = v.id();
  const LayerGraph graph = g.finish(std::move(v));
  CHECK(graph.values[v_id].storage == x_id);
}

TEST_CASE("autocast casts a weight once per forward and drops it at the end") {
  Implementations f;
  f.autocast = DType::bf16;
  GraphBuilder g(f, DType::f32);
  const Weight m = g.parameter("m", "weight", {8, 8});
  Var x = g.input({DType::f32, {1, 4, 8}});
  Var a = matrix_product(g, x, m, std::nullopt);
  Var b = matrix_product(g, x, m, std::nullopt);
  Var c = add(g, std::move(a), std::move(b));
  const LayerGraph graph = g.finish(std::move(c));
  const auto casts_of_weights =
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const OpNode& n) {
        return n.name == "cast" &&
               LayerGraph::slice(graph.operands, n.inputs)[0].kind == Operand::Kind::parameter;
      });
  CHECK(casts_of_weights == 1);
}

TEST_CASE("a block knows what it reads and what outlives it") {
  GraphBuilder g(facts(), DType::bf16);
  const BlockId block = g.begin_block_parameters("layers.0", "Layer");
  const Weight w = g.parameter("layers.0", "weight", {8, 8});
  g.end_block_parameters(block);
  Var x = g.input({DType::bf16, {1, 4, 8}});
  Var before = silu(g, x);
  g.begin_block(block);
  Var inside = matrix_product(g, before, w, std::nullopt);
  Var out = silu(g, inside);
  g.end_block(block, out);
  Var after = add(g, out, inside);  // `inside` is dropped after the block
  const ValueId before_id = before.id(), inside_id = inside.id(), out_id = out.id();
  inside.reset();
  const LayerGraph graph = g.finish(std::move(after));
  const Block& b = graph.blocks[block];
  CHECK(b.inputs == std::vector<ValueId>{before_id});
  CHECK(b.output == out_id);
  CHECK(b.late_drops == std::vector<ValueId>{inside_id});
}

}  // namespace
}  // namespace sim::plan
