// ZeRO stage 3: every parameter is cut into one piece a rank, gathered around each module that uses
// it, and its gradient is scattered back. Sources: zero/partition_parameters.py,
// zero/partitioned_param_coordinator.py, zero/parameter_offload.py, zero/stage3.py.
#pragma once

#include <deque>
#include <vector>

#include "sim/program/hooks/zero.h"

namespace sim::program {

class Zero3 final : public ZeroEngine {
 public:
  Zero3(const Session& session, ZeroOptions options);

  bool packed_waits_on_host() const override { return options_.builds_partitioned; }
  bool takes_modules() const override { return options_.builds_partitioned; }
  void take(Session& session, std::span<const plan::ParameterId> module) override;
  void load(Session& session, std::span<const plan::ParameterId> module) override;
  void wrap(Session& session, LoadedModel& model) override;
  void update(Session& session) override;
  StateDict state_dict(Session& session, const SaveSpec& save) override;

  void before_forward(Walker&, MicroBatch) override;
  void before_operator(Walker&, plan::OpNodeId, Pass) override;
  void after_operator(Walker&, plan::OpNodeId, Pass) override;
  void parameter_gradient(Walker&, plan::ParameterId, TensorId gradient) override;
  void after_backward(Walker&, MicroBatch) override;

 private:
  using ParameterId = plan::ParameterId;
  struct Sharded {
    ScopeId scope;
    std::int64_t elements = 0, piece = 0;  // piece = ceil(elements / world)
    DType dtype = DType::f32;
    bool trainable = false;
    bool persists = false;  // once gathered it stays until the optimizer's step
    TensorId device_piece;  // this rank's piece, on the device, or on the host
    HostBufferId host_piece;
    bool swapped = false;  // the piece lies on NVMe, and passes through the page-locked buffers
    TensorId whole;        // gathered
    std::size_t gather = kNone;  // in flight
    std::int64_t last_use = -1;  // place in the trace of the latest use it was fetched for
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // One coalesced all-gather: the flat result lives until the last of its members has been waited
  // for.
  struct Gather {
    TensorId flat;
    std::vector<ParameterId> members;
    std::size_t waiting = 0;
    bool unpacked = false;
  };
  struct Use {  // of the trace
    ParameterId parameter;
    std::int64_t step = 0;
  };
  struct SubGroup {
    std::vector<ParameterId> members;
    std::int64_t elements = 0;  // of this rank's pieces
  };

  Bytes bytes(const Sharded& s) const { return TensorType{s.dtype, {s.elements}}.bytes(); }
  Bytes piece_bytes(const Sharded& s) const { return TensorType{s.dtype, {s.piece}}.bytes(); }
  Sharded& sharded(ParameterId p) { return sharded_[p]; }
  StreamRole gather_stream() const {
    return options_.overlaps ? StreamRole::unshard : StreamRole::compute;
  }
  StreamRole reduce_stream() const {
    return options_.overlaps ? StreamRole::post_backward : StreamRole::compute;
  }
  const std::vector<ParameterId>& parameters_of(plan::OpNodeId node);

  // --- zero3.cpp: pieces, the flat partitions, the states
  void partition(Builder& b, ParameterId p);  // takes over `whole`
  void swap_out(Builder& b, Sharded& s);
  void make_flat_pieces(Builder& b);
  void make_states(Session& session);
  void make_gradient_buffers(Builder& b);
  void touch_trainable(Builder& b);
  // --- zero3_fetch.cpp: gathering and releasing
  void gather(Builder& b, std::vector<ParameterId> wanted);
  void wait(Builder& b, ParameterId p);
  void prefetch(Builder& b);
  void release(Builder& b, ParameterId p);
  bool is_reused_soon(ParameterId p) const;
  void release_everything(Builder& b);
  // --- zero3_reduce.cpp: gradients and the step
  void add_to_bucket(Builder& b, ParameterId p, TensorId gradient);
  void reduce_bucket(Builder& b);
  void update_sub_group(Session& session, std::size_t index);

  bool swaps_parameters() const {
    return options_.parameters.device == ZeroOptions::Offload::Device::nvme;
  }

  IdVector<ParameterId, Sharded> sharded_;
  bool swap_buffers_made_ = false;
  std::vector<std::vector<ParameterId>> parameters_of_node_;
  std::vector<SubGroup> sub_groups_;
  std::int64_t pieces_ = 0;  // elements of this rank's trainable pieces

  // Coordinator.
  enum class Trace : std::uint8_t { recording, complete } trace_ = Trace::recording;
  std::vector<std::vector<ParameterId>> order_;  // parameters of each module use, in order
  std::vector<Use> uses_;
  std::size_t next_use_ = 0;  // of uses_: the fetch queue's head
  std::int64_t step_ = 0;     // module uses so far in this micro-batch
  std::int64_t available_ = 0;
  std::vector<Gather> gathers_;
  std::deque<EventId> fetch_events_;
  std::vector<EventId> event_of_position_;  // the n-th wait of a micro-batch records the n-th event
  std::size_t position_ = 0;

  // Gradients.
  MicroBatch batch_;
  struct Bucketed {
    ParameterId parameter;
    TensorId own;  // a gradient too large for the bucket keeps its memory
  };
  std::vector<Bucketed> bucket_;
  std::int64_t bucketed_ = 0;
  TensorId bucket_memory_, gradient_pieces_;
};

}  // namespace sim::program
