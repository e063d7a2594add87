// What a strategy does around layers: the walker fires these, in recipe order, as PyTorch fires
// module and autograd hooks. All defaults are empty.
#pragma once

#include <cstdint>

#include "sim/plan/layer_graph.h"
#include "sim/program/op.h"

namespace sim::program {

class Walker;

struct MicroBatch {
  bool first = true;        // of the optimizer step
  bool last = true;         // gradients are synchronised
  bool closes_step = true;  // the optimizer's step follows
};

// Why an operator runs: in the forward pass, again for a checkpointed block, or in backward.
enum class Pass : std::uint8_t { forward, recompute, backward };

class TrainingHook {
 public:
  virtual ~TrainingHook() = default;

  virtual void before_forward(Walker&, MicroBatch) {}
  virtual void after_forward(Walker&, MicroBatch) {}
  virtual void before_block_forward(Walker&, plan::BlockId, bool /*recompute*/) {}
  virtual void after_block_forward(Walker&, plan::BlockId, bool /*recompute*/) {}
  // Around each operator that reads parameters, as hooks of its module fire.
  virtual void before_operator(Walker&, plan::OpNodeId, Pass) {}
  virtual void after_operator(Walker&, plan::OpNodeId, Pass) {}
  virtual void before_backward(Walker&, MicroBatch) {}
  virtual void before_block_backward(Walker&, plan::BlockId) {}
  // The gradient of one parameter is complete; the hook owns one reference to `gradient`.
  virtual void parameter_gradient(Walker&, plan::ParameterId, TensorId /*gradient*/) = 0;
  // All gradients of the block's parameters are there.
  virtual void after_block_backward(Walker&, plan::BlockId) {}
  virtual void after_backward(Walker&, MicroBatch) {}
};

}  // namespace sim::program
