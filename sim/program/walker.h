// The only loop nest over micro-batches, blocks and operators. Runs the layer graph forward,
// recomputes checkpointed blocks, and runs the tape backward, with autograd's lifetimes: a node's
// saved tensors go when its backward has run, gradients that meet are added in place where nobody
// else holds them.
#pragma once

#include "sim/plan/plan.h"
#include "sim/program/builder.h"
#include "sim/program/training_hook.h"

namespace sim::program {

struct WalkerOptions {
  Bytes matrix_workspace;  // per thread and stream, kept for good; zero: outside the allocator
};

class Walker {
 public:
  Walker(const plan::Plan& plan, Builder& builder, TrainingHook& hook, WalkerOptions options);

  const plan::Plan& plan() const { return plan_; }
  Builder& builder() { return builder_; }
  ScopeId scope_of(ScopeId graph_scope) const { return scopes_[graph_scope]; }

  void forward(MicroBatch batch);
  void backward(MicroBatch batch);
  // Names the phases of the first micro-batch while it runs.
  void enter_phase(std::string_view name) { builder_.phase(name); }

 private:
  using Range = plan::Range;
  void run_nodes(Range nodes, bool record, const plan::Block* recomputed = nullptr);
  void run_node(plan::OpNodeId id, bool record, const plan::Block* recomputed);
  void forward_block(plan::BlockId id);
  void backward_block(plan::BlockId id);
  void backward_nodes(Range nodes);
  void backward_node(plan::OpNodeId id);
  // A gradient on its way to a value. Autograd adds to it in place only where it is no view: a view
  // keeps its base, so the storage has two owners (torch/csrc/autograd/input_buffer.cpp).
  struct Gradient {
    TensorId tensor;
    bool view = false;
    bool valid() const { return tensor.valid(); }
  };
  void distribute(const plan::OpNode& node, std::uint8_t operand, Gradient gradient);
  void use_workspace(bool backward);
  bool recomputes(const plan::Block& block) const { return plan_.recompute && !block.no_grad; }
  TensorId slot(plan::ValueId v) const { return slots_[plan_.graph.values[v].storage]; }

  const plan::Plan& plan_;
  Builder& builder_;
  TrainingHook& hook_;
  WalkerOptions options_;
  IdVector<ScopeId, ScopeId> scopes_;                // graph -> program
  IdVector<plan::GraphKernelId, KernelId> kernels_;  // graph -> program
  IdVector<plan::OpNodeId, LabelId> labels_;
  IdVector<plan::ValueId, TensorId> slots_;      // memory of each storage
  IdVector<plan::ValueId, Gradient> gradients_;  // incoming gradient of each value
  std::vector<TensorId> batch_;
  bool workspace_made_[2] = {false, false};  // forward thread, autograd thread
  LabelId batch_label_, gradient_label_, workspace_label_;
  KernelId add_kernel_;
};

}  // namespace sim::program
