#include "sim/program/walker.h"

#include <array>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"

namespace sim::program {

using plan::Block;
using plan::BlockId;
using plan::GradStep;
using plan::LayerGraph;
using plan::Operand;
using plan::OpNode;
using plan::OpNodeId;
using plan::ValueId;

Walker::Walker(const plan::Plan& plan, Builder& builder, TrainingHook& hook, WalkerOptions options)
    : plan_(plan), builder_(builder), hook_(hook), options_(options) {
  const LayerGraph& g = plan.graph;
  for (const plan::Scope& scope : g.scopes) scopes_.push_back(builder.scope(scope.path));
  for (const compute::Kernel& kernel : g.kernels) kernels_.push_back(builder.kernel(kernel));
  for (const OpNode& node : g.nodes) labels_.push_back(builder.label(node.name));
  slots_.resize(g.values.size());
  gradients_.resize(g.values.size());
  batch_label_ = builder.label("batch");
  gradient_label_ = builder.label("activation gradient");
  workspace_label_ = builder.label("cuBLAS workspace");
}

void Walker::use_workspace(bool backward) {
  bool& made = workspace_made_[backward ? 1 : 0];
  if (made || options_.matrix_workspace <= Bytes{0}) return;
  made = true;
  builder_.allocate(options_.matrix_workspace,
                    {MemoryClass::workspace, builder_.scope(""), workspace_label_});
}

void Walker::run_node(OpNodeId id, bool record, const Block* recomputed) {
  const LayerGraph& g = plan_.graph;
  const OpNode& node = g.nodes[id];
  const ScopeId scope = scopes_[node.scope];
  const Pass pass = recomputed != nullptr ? Pass::recompute : Pass::forward;
  builder_.set_scope(scope);
  hook_.before_operator(*this, id, pass);
  for (ValueId v : LayerGraph::slice(g.outputs, node.outputs)) {
    const plan::Value& value = g.values[v];
    if (value.storage == v) {
      slots_[v] =
          builder_.allocate(value.type.bytes(), {MemoryClass::activations, scope, labels_[id]});
    } else {
      builder_.retain(slots_[value.storage]);
    }
  }
  if (node.workspace)
    use_workspace(recomputed != nullptr);  // recomputation runs on autograd's thread
  const auto temporaries = LayerGraph::slice(g.temporaries, node.temporaries);
  std::array<TensorId, 8> temps;
  CHECK(temporaries.size() <= temps.size(), "an operator has at most eight forward temporaries");
  for (std::size_t i = 0; i < temporaries.size(); ++i) {
    temps[i] =
        builder_.allocate(temporaries[i].bytes(), {MemoryClass::temporaries, scope, labels_[id]});
  }
  if (node.kernel.valid()) builder_.launch(kernels_[node.kernel]);
  for (std::size_t i = temporaries.size(); i-- > 0;) builder_.release(temps[i]);
  if (record) {
    for (ValueId v : LayerGraph::slice(g.saved, node.saved)) {
      builder_.retain(slots_[v]);
      builder_.saved_by(slots_[v], labels_[id]);
    }
  }
  for (ValueId v : LayerGraph::slice(g.dropped, node.dropped)) {
    // A recomputation drops only what it made; the caller's variables went with the first forward.
    if (recomputed != nullptr && (!recomputed->values.contains(v.value) || v == recomputed->output))
      continue;
    builder_.release(slot(v));
  }
  hook_.after_operator(*this, id, pass);
}

void Walker::run_nodes(Range nodes, bool record, const Block* recomputed) {
  for (std::uint32_t n = nodes.begin; n < nodes.end; ++n) run_node(OpNodeId{n}, record, recomputed);
}

void Walker::forward_block(BlockId id) {
  const Block& block = plan_.graph.blocks[id];
  builder_.set_scope(scopes_[block.scope]);
  hook_.before_block_forward(*this, id, false);
  if (recomputes(block)) {
    for (ValueId v : block.inputs) {
      builder_.retain(slot(v));
      builder_.saved_by(slot(v), builder_.label("activation checkpoint"));
    }
  }
  run_nodes(block.nodes, !recomputes(block));
  builder_.set_scope(scopes_[block.scope]);
  hook_.after_block_forward(*this, id, false);
}

void Walker::forward(MicroBatch batch) {
  const LayerGraph& g = plan_.graph;
  builder_.set_scope(builder_.scope(""));
  batch_.clear();
  for (ValueId v : g.inputs) {
    const Bytes bytes = g.values[v].type.bytes();
    slots_[v] =
        builder_.allocate(bytes, {MemoryClass::activations, builder_.scope(""), batch_label_});
    builder_.copy(bytes, CopyDirection::host_to_device, false);
    // The trainer's dict of inputs holds them for the whole micro-batch.
    builder_.retain(slots_[v]);
    batch_.push_back(slots_[v]);
  }
  hook_.before_forward(*this, batch);
  std::uint32_t next = 0;
  for (std::uint32_t b = 0; b < g.blocks.size(); ++b) {
    const Block& block = g.blocks[BlockId{b}];
    run_nodes({next, block.nodes.begin}, true);
    forward_block(BlockId{b});
    next = block.nodes.end;
  }
  run_nodes({next, static_cast<std::uint32_t>(g.nodes.size())}, true);
  hook_.after_forward(*this, batch);
}

void Walker::distribute(const OpNode& node, std::uint8_t operand, Gradient gradient) {
  const Operand& o = plan_.graph.operands[node.inputs.begin + operand];
  if (o.kind == Operand::Kind::parameter) {
    hook_.parameter_gradient(*this, o.parameter(), gradient.tensor);
    return;
  }
  Gradient& held = gradients_[o.value()];
  if (!held.valid()) {
    held = gradient;
    return;
  }
  const Bytes bytes = builder_.bytes(held.tensor);
  const TensorType type{DType::u8, {bytes.count}};
  if (!held.view && builder_.references(held.tensor) == 1) {
    builder_.launch({&compute::kElementwise, {type, type}, {type}});
  } else {
    // Somebody else (a saved tensor, another input) shares its memory: the sum is a new tensor.
    const TensorId sum =
        builder_.allocate(bytes, {MemoryClass::temporaries, scopes_[node.scope], gradient_label_});
    builder_.launch({&compute::kElementwise, {type, type}, {type}});
    builder_.release(held.tensor);
    held = {sum, false};
  }
  builder_.release(gradient.tensor);
}

void Walker::backward_node(OpNodeId id) {
  const LayerGraph& g = plan_.graph;
  const OpNode& node = g.nodes[id];
  const auto outputs = LayerGraph::slice(g.outputs, node.outputs);
  if (!node.needs_grad) {
    // The gradient of a leaf that asks for one (an embedding's output) ends here.
    for (ValueId v : outputs) {
      if (Gradient& held = gradients_[v]; held.valid()) {
        builder_.release(std::exchange(held, Gradient{}).tensor);
      }
    }
    return;
  }
  const ScopeId scope = scopes_[node.scope];
  builder_.set_scope(scope);
  std::array<Gradient, 4> incoming;
  bool any = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    incoming[i] = std::exchange(gradients_[outputs[i]], Gradient{});
    any |= incoming[i].valid();
  }
  std::array<TensorId, 8> temps;
  std::array<std::pair<std::uint8_t, Gradient>, 8> made;
  std::size_t count = 0;
  if (any) {
    hook_.before_operator(*this, id, Pass::backward);
    for (const GradStep& step : LayerGraph::slice(g.backward, node.backward)) {
      switch (step.kind) {
        case GradStep::Kind::allocate:
          temps[step.temp] =
              builder_.allocate(step.type.bytes(), {MemoryClass::temporaries, scope, labels_[id]});
          break;
        case GradStep::Kind::release:
          builder_.release(temps[step.temp]);
          break;
        case GradStep::Kind::launch:
          builder_.launch(kernels_[step.kernel]);
          break;
        case GradStep::Kind::produce: {
          const Operand& o = g.operands[node.inputs.begin + step.operand];
          const bool parameter = o.kind == Operand::Kind::parameter;
          made[count++] = {
              step.operand,
              {builder_.allocate(step.type.bytes(),
                                 {parameter ? MemoryClass::gradients : MemoryClass::temporaries,
                                  scope, parameter ? labels_[id] : gradient_label_}),
               step.view}};
          if (node.workspace) use_workspace(true);
          break;
        }
        case GradStep::Kind::pass:
          builder_.retain(incoming[step.source].tensor);
          made[count++] = {step.operand,
                           {incoming[step.source].tensor, incoming[step.source].view || step.view}};
          break;
        case GradStep::Kind::hand_over:
          made[count++] = {step.operand, {temps[step.temp], false}};
          break;
      }
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (incoming[i].valid()) builder_.release(incoming[i].tensor);
  }
  for (ValueId v : LayerGraph::slice(g.saved, node.saved)) builder_.release(slots_[v]);
  for (std::size_t i = 0; i < count; ++i) distribute(node, made[i].first, made[i].second);
  if (any) hook_.after_operator(*this, id, Pass::backward);
}

void Walker::backward_nodes(Range nodes) {
  for (std::uint32_t n = nodes.end; n-- > nodes.begin;) backward_node(OpNodeId{n});
}

void Walker::backward_block(BlockId id) {
  const Block& block = plan_.graph.blocks[id];
  if (block.no_grad) return;
  builder_.set_scope(scopes_[block.scope]);
  if (!recomputes(block)) {
    hook_.before_block_backward(*this, id);
    backward_nodes(block.nodes);
    hook_.after_block_backward(*this, id);
    return;
  }
  if (plan_.recompute_reentrant) {
    // The block's forward runs again with all its hooks; the backward of its output fires the rest.
    hook_.before_block_forward(*this, id, true);
    run_nodes(block.nodes, true, &block);
    hook_.after_block_forward(*this, id, true);
    hook_.before_block_backward(*this, id);
  } else {
    hook_.before_block_backward(*this, id);
    run_nodes(block.nodes, true, &block);
  }
  for (ValueId v : block.late_drops) builder_.release(slot(v));
  backward_nodes(block.nodes);
  hook_.after_block_backward(*this, id);
  builder_.release(slot(block.output));
  for (ValueId v : block.inputs) builder_.release(slot(v));
}

void Walker::backward(MicroBatch batch) {
  const LayerGraph& g = plan_.graph;
  builder_.set_scope(scopes_[g.nodes.back().scope]);
  hook_.before_backward(*this, batch);
  // torch.autograd.backward keeps the first gradient in its own tuple to the end.
  const TensorId root =
      builder_.allocate(g.values[g.loss].type.bytes(),
                        {MemoryClass::temporaries, builder_.scope("loss"), gradient_label_});
  builder_.retain(root);
  gradients_[g.loss] = {root, false};
  auto last = static_cast<std::uint32_t>(g.nodes.size());
  for (auto b = static_cast<std::uint32_t>(g.blocks.size()); b-- > 0;) {
    const Block& block = g.blocks[BlockId{b}];
    backward_nodes({block.nodes.end, last});
    backward_block(BlockId{b});
    last = block.nodes.begin;
  }
  backward_nodes({0, last});
  hook_.after_backward(*this, batch);
  builder_.release(root);
  builder_.release(slot(g.loss));
  for (TensorId t : batch_) builder_.release(t);
}

}  // namespace sim::program
