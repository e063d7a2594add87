// DistributedDataParallel: a whole replica on every rank; gradients reduced in buckets while
// backward runs. Sources: torch/nn/parallel/distributed.py and
// torch/csrc/distributed/c10d/{reducer,comm}.cpp of 1.13 to 2.6.
#pragma once

#include <vector>

#include "sim/program/hooks/whole_model.h"

namespace sim::program {

struct DdpOptions {
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  Bytes bucket_cap;
};

class Ddp final : public WholeModel {
 public:
  Ddp(const Session& session, DdpOptions options) : WholeModel(session), options_(options) {}

  void wrap(Session& session, LoadedModel& model) override;
  bool has_no_sync() const override { return true; }
  void before_forward(Walker&, MicroBatch) override;
  void parameter_gradient(Walker&, plan::ParameterId, TensorId gradient) override;
  void after_backward(Walker&, MicroBatch) override;

 private:
  struct Bucket {
    DType dtype = DType::f32;
    std::int64_t elements = 0;
    std::vector<std::size_t> members;  // of state_
    std::size_t missing = 0;           // gradients of this micro-batch that are not there yet
    TensorId memory;
  };
  void broadcast_model(Session& session);
  void make_buckets(Builder& b, const std::vector<std::size_t>& order,
                    const std::vector<Bytes>& limits);

  DdpOptions options_;
  Session* session_ = nullptr;
  MicroBatch batch_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // by index into state_
  std::vector<std::size_t> arrival_;    // of gradients in the first reduced backward
  bool rebuilt_ = false;
};

}  // namespace sim::program
