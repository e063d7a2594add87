// DeepSpeed's engine and its ZeRO optimizers. Sources: deepspeed/runtime/engine.py and
// deepspeed/runtime/zero/ of 0.12.3 and 0.14.2, with what other releases do differently as facts of
// libraries/deepspeed.cpp.
#pragma once

#include <vector>

#include "sim/program/hooks/pinned_memory.h"
#include "sim/program/strategy.h"

namespace sim::program {

struct ZeroOptions {
  // Where a state lives between its uses.
  struct Offload {
    enum class Device : std::uint8_t { none, cpu, nvme } device = Device::none;
    bool pinned = false;
    std::int64_t buffers = 0;      // NVMe: pinned buffers that pages are read into
    std::int64_t buffer_size = 0;  // NVMe: elements of one, of parameters
    std::int64_t in_memory = 0;    // NVMe: parameters that stay in host memory
    bool anywhere() const { return device != Device::none; }
  };
  int stage = 0;
  std::optional<DType> low;        // the type that the module is cast to; none: fp32 training
  std::optional<DType> gradients;  // stage 3: of the gradients' pieces, where not the weights' own
  // In elements, as the configuration counts them.
  std::int64_t reduce_bucket = 500'000'000;
  std::int64_t prefetch_bucket = 50'000'000;
  std::int64_t max_live = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t persistence_threshold = 100'000;
  std::int64_t persistence_limit = std::int64_t{1} << 40;  // of all that persist
  std::int64_t sub_group = 1'000'000'000;
  bool contiguous_gradients = true;
  bool overlaps = false;
  bool reduce_scatter = true;
  bool round_robin = false;
  bool gathers_on_save = false;
  Offload optimizer, parameters;
  bool states_made_in_wrap = false;  // the optimizer's first step runs inside initialize()
  bool pins_partition = false;       // offload in stages 1 and 2: the fp32 partition is page-locked
  bool casts_buffers = true;         // with the parameters
  bool fused_adam = false;           // DeepSpeed's own: one kernel, no temporaries
  bool builds_partitioned = false;   // deepspeed.zero.Init is active while the model is built
};

// deepspeed.initialize() as far as all stages share it: the whole module is cast, moved and
// broadcast, frozen parameters and buffers with it.
class ZeroEngine : public Strategy {
 public:
  ZeroEngine(const Session& session, ZeroOptions options);

  std::vector<ParameterState>& state() override { return state_; }
  void clip_gradients(Session&) override {}  // part of update()
  void zero_grad(Session& session, bool to_none) override;

 protected:
  void initialise_module(Session& session, LoadedModel& model);
  DType trained_type(const plan::Parameter& p) const { return p.type.dtype; }
  TensorId gpu(Builder& b, Bytes bytes, MemoryClass memory_class, ScopeId scope, const char* what,
               StreamRole stream = StreamRole::compute) const {
    return b.allocate(bytes, {memory_class, scope, b.label(what)}, stream);
  }
  // A host tensor, page-locked where asked: the pageable one is copied and goes.
  HostBufferId host(Builder& b, Bytes bytes, bool pinned, ScopeId scope, const char* what);
  void free_host(Builder& b, HostBufferId buffer, bool pinned);
  // Adam's first update makes its states where the partition lives.
  void update_partition(Session& session, ParameterState& partition);
  static Duration host_update_time(std::int64_t elements);  // DeepSpeedCPUAdam
  static Duration swap_time(Bytes bytes);                   // to or from NVMe
  static Bytes swapped_states(std::int64_t elements);       // of one update, both ways
  // The norm of a gradient is taken in fp64 (`_constant_buffered_norm2`, get_grad_norm_direct).
  void norm(Builder& b, std::int64_t elements, ScopeId scope,
            StreamRole stream = StreamRole::compute);

  ZeroOptions options_;
  const plan::LayerGraph& graph_;
  std::int64_t world_;
  std::vector<ParameterState> state_;  // fp32 partitions that this rank updates
  PinnedMemory pinned_;
  Session* session_ = nullptr;  // while training; set by wrap

 private:
  void cast_module(Session& session, LoadedModel& model);
  void move_module(Session& session, LoadedModel& model);
  void broadcast_module(Session& session, const LoadedModel& model);
};

}  // namespace sim::program
