// ZeRO stages 1 and 2: every rank holds the whole module and updates one part of the trainable
// weights in fp32; stage 2 keeps the gradients of that part alone. Source:
// zero/stage_1_and_2.py.
#pragma once

#include <vector>

#include "sim/program/hooks/zero.h"

namespace sim::program {

class Zero12 final : public ZeroEngine {
 public:
  Zero12(const Session& session, ZeroOptions options);

  void wrap(Session& session, LoadedModel& model) override;
  void update(Session& session) override;
  StateDict state_dict(Session& session, const SaveSpec& save) override;

  void before_backward(Walker&, MicroBatch) override;
  void parameter_gradient(Walker&, plan::ParameterId, TensorId gradient) override;
  void after_backward(Walker&, MicroBatch) override;

 private:
  struct Trained {
    plan::ParameterId id;
    ScopeId scope;
    std::int64_t elements = 0;
    std::int64_t own = 0;  // elements that lie in this rank's part
    TensorId gradient;     // stage 1, until it is reduced
    HostBufferId accumulated;
  };
  struct Bucketed {
    std::size_t trained = 0;
    TensorId own;  // a gradient too large for the bucket keeps its memory
  };

  TensorType flat(std::int64_t elements) const { return {dtype_, {elements}}; }
  StreamRole reduce_stream() const {
    return options_.overlaps ? StreamRole::post_backward : StreamRole::compute;
  }
  void choose_part();
  void flatten_weights(Builder& b, LoadedModel& model);
  void make_partition(Session& session);
  void add_to_bucket(Builder& b, std::size_t trained, TensorId gradient);
  void reduce_bucket(Builder& b);
  void keep_own(Builder& b, const Bucketed& gradient);
  void release_buckets(Builder& b);

  DType dtype_ = DType::f32;  // of the trainable weights
  std::vector<Trained> trained_;
  std::vector<std::size_t> trained_of_;  // by ParameterId
  std::int64_t all_ = 0;                 // elements, padded for equal, aligned parts
  std::int64_t part_ = 0;                // of one rank
  std::int64_t touched_ = 0;             // elements of the weights that reach into the part

  MicroBatch batch_;
  std::vector<TensorId> buckets_;  // ipg_buffer: one, two where communication overlaps
  std::vector<Bucketed> bucket_;
  std::int64_t bucketed_ = 0;
  TensorId weights_;    // all trainable weights, flat
  TensorId temporary_;  // offload: the largest weight's gradient
  TensorId own_;        // gradients of this micro-batch that reach into the part
  TensorId averaged_;   // those of the step so far
};

}  // namespace sim::program
