// FSDP1 (torch.distributed.fsdp.FullyShardedDataParallel) of torch 1.13 and 2.x: flat parameters,
// sharded over the world, gathered around each wrapped block. Sources: torch/distributed/fsdp/
// {_init_utils,flat_param,_runtime_utils,_state_dict_utils}.py of 2.0,
// fully_sharded_data_parallel.py of 1.13.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/program/strategy.h"

namespace sim::program {

struct FsdpOptions {
  bool reshard_after_forward = true;  // full_shard; false: shard_grad_op
  std::optional<DType> param_dtype;   // MixedPrecision; none: master precision everywhere
  bool cast_buffers = false;          // MixedPrecision.buffer_dtype = param_dtype
  bool limit_all_gathers = false;
  bool backward_prefetch = true;  // BACKWARD_PRE
  std::string wrap;               // class name of the blocks that become units; empty: one unit
};

class Fsdp final : public Strategy {
 public:
  Fsdp(const Session& session, FsdpOptions options);

  void wrap(Session& session, LoadedModel& model) override;
  std::vector<ParameterState>& state() override { return state_; }
  void clip_gradients(Session& session) override;
  void zero_grad(Session& session, bool to_none) override;
  StateDict state_dict(Session& session, const SaveSpec& save) override;
  bool has_no_sync() const override { return true; }

  void before_forward(Walker&, MicroBatch) override;
  void before_block_forward(Walker&, plan::BlockId, bool recompute) override;
  void after_block_forward(Walker&, plan::BlockId, bool recompute) override;
  void before_backward(Walker&, MicroBatch) override;
  void before_block_backward(Walker&, plan::BlockId) override;
  void parameter_gradient(Walker&, plan::ParameterId, TensorId gradient) override;
  void after_block_backward(Walker&, plan::BlockId) override;
  void after_backward(Walker&, MicroBatch) override;

 private:
  struct Unit {
    ScopeId scope;
    std::vector<plan::ParameterId> parameters;
    std::int64_t elements = 0, shard = 0;  // shard = ceil(elements / world)
    TensorId gathered;                     // unsharded, in param_dtype; none: sharded
    TensorId unsharded_gradient;           // flat_param.grad before reduction
    std::vector<std::pair<plan::ParameterId, TensorId>> view_gradients;
  };
  using UnitIndex = std::size_t;  // 0 is the root

  std::int64_t padded(const Unit& u) const { return u.shard * world_; }
  Bytes gathered_bytes(const Unit& u) const;
  Purpose purpose(const Unit& u, MemoryClass memory_class, LabelId label) const {
    return {memory_class, u.scope, label};
  }
  void construct(Session& session, UnitIndex unit, LoadedModel& model);
  void lazy_init(Builder& b);
  void gather(Builder& b, UnitIndex unit);
  void use(Builder& b, UnitIndex unit);  // gather if need be, then let the compute stream wait
  void reshard(Builder& b, UnitIndex unit);
  void reduce(Builder& b, UnitIndex unit);  // split's backward, then the post-backward hook
  void save_unit(Session& session, UnitIndex unit, const SaveSpec& save, StateDict& out);
  TensorId gather_full_precision(Session& session, const Unit& unit, StreamRole stream);
  UnitIndex unit_of(plan::BlockId block) const;

  FsdpOptions options_;
  const TorchFacts& torch_;
  const plan::LayerGraph& graph_;
  Session* session_ = nullptr;  // while training; set by wrap
  std::int64_t world_;
  DType master_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_parameter_;
  std::vector<ParameterState> state_;  // by unit
  IdVector<plan::BufferId, TensorId> buffers_;
  MicroBatch batch_;
  bool initialised_ = false;
  std::deque<EventId> free_events_;  // limiter: reshards whose memory is not yet known to be free
  std::vector<EventId>
      event_of_position_;  // the n-th reshard of a micro-batch records the n-th event
  std::size_t position_ = 0;
  LabelId flat_label_, shard_label_, gathered_label_, low_shard_label_, gradient_label_,
      reduced_label_, full_label_, clone_label_, buffer_label_, init_label_;
};

}  // namespace sim::program
