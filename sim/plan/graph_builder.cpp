#include "sim/plan/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

Var::Var(const Var& other) : graph_(other.graph_), id_(other.id_) {
  if (graph_ != nullptr) graph_->retain(id_);
}

Var& Var::operator=(Var other) noexcept {
  std::swap(graph_, other.graph_);
  std::swap(id_, other.id_);
  return *this;
}

void Var::reset() {
  if (GraphBuilder* graph = std::exchange(graph_, nullptr)) graph->release(id_);
}

const TensorType& Var::type() const { return graph_->graph_.values[id_].type; }
bool Var::needs_grad() const { return graph_->graph_.values[id_].needs_grad; }

GraphBuilder::GraphBuilder(const Implementations& implementations, DType weights)
    : facts_(implementations), weights_(weights) {
  scope_ = graph_.scopes.push_back({""});
  scope_ids_.emplace("", scope_);
}

GraphBuilder::ScopeGuard GraphBuilder::scope(const std::string& path) {
  const ScopeId previous = scope_;
  auto [it, fresh] = scope_ids_.try_emplace(path, graph_.scopes.next_id());
  if (fresh) graph_.scopes.push_back({path});
  scope_ = it->second;
  return ScopeGuard(*this, previous);
}

Weight GraphBuilder::add_parameter(const std::string& module, std::string_view name,
                                   Parameter parameter) {
  auto guard = scope(module);
  parameter.scope = scope_;
  parameter.name = fmt::format("{}.{}", module, name);
  if (parameter.matrix.rank == 0) parameter.matrix = parameter.type.shape;
  // A wrapper that computes in another type than the weights are loaded in casts all of them.
  const bool as_held = facts_.compute == weights_;
  const Weight weight{{graph_.parameters.next_id()},
                      {as_held ? parameter.type.dtype : facts_.compute, parameter.matrix},
                      parameter.trainable};
  graph_.parameters.push_back(std::move(parameter));
  return weight;
}

Weight GraphBuilder::parameter(const std::string& module, std::string_view name, Shape shape) {
  Parameter p;
  p.trainable = !facts_.adapters && !frozen_copy_;
  if (frozen_copy_) p.origin = Parameter::Origin::reference;
  p.loaded = weights_;
  p.type = {facts_.cast_to.value_or(facts_.frozen.value_or(weights_)), shape};
  return add_parameter(module, name, std::move(p));
}

Weight GraphBuilder::packed_parameter(const std::string& module, std::string_view name,
                                      Shape shape) {
  const PackedWeights& packed = *facts_.packed;
  Parameter p;
  p.trainable = false;
  p.loaded = packed.storage;
  p.matrix = shape;
  // functional.py quantize_4bit: ((n + 1) // (2 * itemsize), 1) elements of the storage type.
  const std::int64_t per_element = bits(packed.storage) / 4;
  p.type = packed.code == PackedWeights::Code::int8
               ? TensorType{DType::i8, {shape.elements()}}
               : TensorType{packed.storage, {(shape.elements() + 1) / per_element, 1}};
  Weight weight = add_parameter(module, name, std::move(p));
  weight.type.dtype = packed.unpacked;
  return weight;
}

Weight GraphBuilder::adapter_parameter(const std::string& module, std::string_view name,
                                       Shape shape) {
  Parameter p;
  p.origin = Parameter::Origin::adapter;
  p.loaded = facts_.adapters->dtype;
  p.type = {facts_.cast_to.value_or(facts_.adapters->dtype), shape};
  return add_parameter(module, name, std::move(p));
}

BufferId GraphBuilder::buffer(const std::string& module, std::string_view name, TensorType type,
                              bool persistent) {
  auto guard = scope(module);
  return graph_.buffers.push_back({scope_, fmt::format("{}.{}", module, name), type, persistent,
                                   graph_.parameters.next_id().value});
}

Var GraphBuilder::input(TensorType type) {
  const ValueId id = graph_.values.next_id();
  graph_.values.push_back({type, id, false, true});
  references_.push_back(1);
  graph_.inputs.push_back(id);
  return Var(this, id);
}

void GraphBuilder::require_grad(const Var& value) { graph_.values[value.id()].needs_grad = true; }

BlockId GraphBuilder::begin_block_parameters(const std::string& path, std::string_view class_name) {
  auto guard = scope(path);
  Block block;
  block.scope = scope_;
  block.class_name = class_name;
  block.parameters.begin = graph_.parameters.next_id().value;
  return graph_.blocks.push_back(std::move(block));
}

void GraphBuilder::end_block_parameters(BlockId block) {
  graph_.blocks[block].parameters.end = graph_.parameters.next_id().value;
}

BlockId GraphBuilder::repeat_block(BlockId block) {
  Block again;
  again.scope = graph_.blocks[block].scope;
  again.class_name = graph_.blocks[block].class_name;
  again.parameters = graph_.blocks[block].parameters;
  return graph_.blocks.push_back(std::move(again));
}

void GraphBuilder::begin_block(BlockId block) {
  graph_.blocks[block].no_grad = !grad_enabled_;
  graph_.blocks[block].nodes.begin = graph_.nodes.next_id().value;
  graph_.blocks[block].values.begin = graph_.values.next_id().value;
}

void GraphBuilder::end_block(BlockId block, const Var& output) {
  graph_.blocks[block].nodes.end = graph_.nodes.next_id().value;
  graph_.blocks[block].values.end = graph_.values.next_id().value;
  graph_.blocks[block].output = output.id();
}

Var GraphBuilder::autocast_weight(const Weight& weight) {
  for (const auto& [id, var] : autocast_cache_) {
    if (id == weight.id) return var;
  }
  Var low = cast_weight(*this, weight, *facts_.autocast);
  if (facts_.autocast_caches_weights && weight.needs_grad)
    autocast_cache_.emplace_back(weight.id, low);
  return low;
}

void GraphBuilder::release(ValueId id) {
  if (--references_[id] > 0 || graph_.nodes.empty()) return;
  graph_.dropped.push_back(id);
  graph_.nodes.back().dropped.end = static_cast<std::uint32_t>(graph_.dropped.size());
}

GraphKernelId GraphBuilder::intern(compute::Kernel kernel) {
  std::size_t hash = std::hash<const void*>{}(kernel.kind);
  const auto mix = [&hash](std::int64_t n) {
    hash = (hash ^ static_cast<std::size_t>(n)) * 0x9e3779b97f4a7c15ull;
  };
  for (const auto* side : {&kernel.in, &kernel.out}) {
    mix(static_cast<std::int64_t>(side->size()));
    for (const TensorType& t : *side) {
      mix(static_cast<std::int64_t>(t.dtype));
      for (int i = 0; i < t.shape.rank; ++i) mix(t.shape[i]);
    }
  }
  auto [begin, end] = kernel_ids_.equal_range(hash);
  for (; begin != end; ++begin) {
    if (graph_.kernels[begin->second] == kernel) return begin->second;
  }
  const GraphKernelId id = graph_.kernels.push_back(std::move(kernel));
  kernel_ids_.emplace(hash, id);
  return id;
}

namespace {

// What a block reads from outside, and what it makes that its caller drops later.
void close_blocks(LayerGraph& graph) {
  IdVector<ValueId, std::uint32_t> dropped_after(graph.values.size(), 0xffffffffu);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId v : LayerGraph::slice(graph.dropped, graph.nodes[OpNodeId{n}].dropped))
      dropped_after[v] = n;
  }
  for (Block& block : graph.blocks) {
    for (std::uint32_t n = block.nodes.begin; n < block.nodes.end; ++n) {
      const OpNode& node = graph.nodes[OpNodeId{n}];
      for (const Operand& o : LayerGraph::slice(graph.operands, node.inputs)) {
        if (o.kind != Operand::Kind::value || block.values.contains(o.index)) continue;
        if (std::find(block.inputs.begin(), block.inputs.end(), o.value()) == block.inputs.end()) {
          block.inputs.push_back(o.value());
        }
      }
    }
    for (std::uint32_t v = block.values.begin; v < block.values.end; ++v) {
      const ValueId value{v};
      if (value != block.output && dropped_after[value] >= block.nodes.end)
        block.late_drops.push_back(value);
    }
  }
}

}  // namespace

LayerGraph GraphBuilder::finish(Var loss) {
  graph_.loss = loss.id();
  autocast_cache_.clear();
  // The loss outlives the forward: its reference is the script's, not a drop of the graph.
  Var kept(std::move(loss));
  kept.graph_ = nullptr;
  close_blocks(graph_);
  return std::move(graph_);
}

Node::Node(GraphBuilder& graph, const Operator& op) : graph_(graph) {
  LayerGraph& g = graph.graph_;
  OpNode node;
  node.name = op.name;
  node.scope = graph.scope_;
  const auto start = [](std::size_t n) {
    return Range{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n)};
  };
  node.inputs = start(g.operands.size());
  node.outputs = start(g.outputs.size());
  node.temporaries = start(g.temporaries.size());
  node.saved = start(g.saved.size());
  node.dropped = start(g.dropped.size());
  node.backward = start(g.backward.size());
  id_ = g.nodes.push_back(node);
}

Node::~Node() { inputs_.clear(); }

OpNode& Node::node() { return graph_.graph_.nodes[id_]; }

int Node::in(Var x) {
  graph_.graph_.operands.push_back({Operand::Kind::value, x.id().value});
  ++node().inputs.end;
  operand_needs_.push_back(graph_.grad_enabled_ && x.needs_grad());
  node().needs_grad |= operand_needs_.back();
  inputs_.push_back(std::move(x));
  return static_cast<int>(operand_needs_.size()) - 1;
}

int Node::in(const Weight& w) {
  graph_.graph_.operands.push_back({Operand::Kind::parameter, w.id.value});
  ++node().inputs.end;
  operand_needs_.push_back(graph_.grad_enabled_ && w.needs_grad);
  node().needs_grad |= operand_needs_.back();
  return static_cast<int>(operand_needs_.size()) - 1;
}

void Node::in(BufferId b) {
  graph_.graph_.operands.push_back({Operand::Kind::buffer, b.value});
  ++node().inputs.end;
  operand_needs_.push_back(false);
}

void Node::temporary(TensorType type) {
  graph_.graph_.temporaries.push_back(type);
  ++node().temporaries.end;
}

Var Node::out(TensorType type) {
  LayerGraph& g = graph_.graph_;
  const bool integer = type.dtype == DType::i64 || type.dtype == DType::b1;
  const ValueId id = g.values.next_id();
  g.values.push_back({type, id, node().needs_grad && !integer, false});
  graph_.references_.push_back(1);
  g.outputs.push_back(id);
  ++node().outputs.end;
  return Var(&graph_, id);
}

Var Node::view(int of, TensorType type) {
  LayerGraph& g = graph_.graph_;
  const Operand& base = g.operands[node().inputs.begin + static_cast<std::uint32_t>(of)];
  CHECK(base.kind == Operand::Kind::value, "only values are viewed");
  Var v = out(type);
  g.values[v.id()].storage = g.values[base.value()].storage;
  return v;
}

void Node::launch(const compute::KernelKind& kind, std::initializer_list<TensorType> in,
                  std::initializer_list<TensorType> out) {
  const compute::Kernel kernel{&kind, in, out, graph_.facts_.tf32};
  if (kind.matrix && node().needs_grad) {
    // Forward plus the two products of backward; a frozen weight's gradient is not computed, but
    // the usual count of model FLOPs (6 per parameter and token) takes it all the same.
    graph_.graph_.model_flops += kind.work(kernel).flops * 3.0;
  } else if (kind.matrix) {
    graph_.graph_.model_flops += kind.work(kernel).flops;
  }
  node().kernel = graph_.intern(kernel);
}

void Node::save(const Var& value) {
  LayerGraph& g = graph_.graph_;
  if (!node().needs_grad) return;
  g.saved.push_back(g.values[value.id()].storage);
  ++node().saved.end;
}

void Node::workspace() { node().workspace = true; }

bool Node::needs_any() const {
  return std::find(operand_needs_.begin(), operand_needs_.end(), true) != operand_needs_.end();
}

namespace {
GradStep step(GradStep::Kind kind, int operand, TensorType type, int temp = 0) {
  GradStep s;
  s.kind = kind;
  s.operand = static_cast<std::uint8_t>(operand);
  s.temp = static_cast<std::uint8_t>(temp);
  s.type = type;
  return s;
}
}  // namespace

int Node::allocate(TensorType type) {
  graph_.graph_.backward.push_back(step(GradStep::Kind::allocate, 0, type, temps_));
  ++node().backward.end;
  return temps_++;
}

void Node::release(int temp) {
  graph_.graph_.backward.push_back(step(GradStep::Kind::release, 0, {}, temp));
  ++node().backward.end;
}

void Node::launch_backward(const compute::KernelKind& kind, std::initializer_list<TensorType> in,
                           std::initializer_list<TensorType> out) {
  GradStep s = step(GradStep::Kind::launch, 0, {});
  s.kernel = graph_.intern({&kind, in, out, graph_.facts_.tf32});
  graph_.graph_.backward.push_back(s);
  ++node().backward.end;
}

void Node::produce(int operand, TensorType type) {
  graph_.graph_.backward.push_back(step(GradStep::Kind::produce, operand, type));
  ++node().backward.end;
}

void Node::produce_view(int operand, TensorType type) {
  produce(operand, type);
  graph_.graph_.backward.back().view = true;
}

void Node::pass(int operand, int source) {
  GradStep s = step(GradStep::Kind::pass, operand, {});
  s.source = static_cast<std::uint8_t>(source);
  graph_.graph_.backward.push_back(s);
  ++node().backward.end;
}

void Node::pass_view(int operand, int source) {
  pass(operand, source);
  graph_.graph_.backward.back().view = true;
}

void Node::hand_over(int operand, int temp) {
  graph_.graph_.backward.push_back(step(GradStep::Kind::hand_over, operand, {}, temp));
  ++node().backward.end;
}

}  // namespace sim::plan
