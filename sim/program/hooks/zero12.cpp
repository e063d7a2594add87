#include "sim/program/hooks/zero12.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/compute/kernels/kinds.h"

namespace sim::program {

using plan::ParameterId;

namespace {
constexpr std::int64_t kAlignment = 2;  // nccl_start_alignment_factor, in elements
constexpr ByteRate kHostCopy{10e9};     // one thread, pageable memory
}  // namespace

Zero12::Zero12(const Session& session, ZeroOptions options) : ZeroEngine(session, options) {
  Builder& b = session.builder;
  trained_of_.resize(graph_.parameters.size());
  for (ParameterId p{0}; p.value < graph_.parameters.size(); ++p.value) {
    const plan::Parameter& parameter = graph_.parameters[p];
    if (!parameter.trainable) continue;
    dtype_ = parameter.type.dtype;
    trained_of_[p.value] = trained_.size();
    trained_.push_back({p, b.scope(parameter.name), parameter.type.shape.elements(), 0, {}, {}});
    all_ += trained_.back().elements;
  }
  // flatten_dense_tensors_aligned
  const std::int64_t unit = kAlignment * world_;
  all_ = (all_ + unit - 1) / unit * unit;
  part_ = all_ / world_;
  choose_part();
  if (!trained_.empty()) state_.push_back({b.scope(""), part_, DType::f32, true, {}, {}, {}});
}

// Which weights reach into a part differs by rank. All ranks run one program here: that of the rank
// whose part is touched by the most elements, for it is the first to run out.
void Zero12::choose_part() {
  std::vector<std::size_t> order(trained_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options_.round_robin) {  // _round_robin_reorder: every world-th weight to one rank
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return static_cast<std::int64_t>(i) % world_; });
  }
  for (std::int64_t rank = 0; rank < world_; ++rank) {
    const std::int64_t begin = rank * part_, end = begin + part_;
    std::vector<std::int64_t> own(trained_.size());
    std::int64_t at = 0, touched = 0;
    for (std::size_t i : order) {
      const std::int64_t next = at + trained_[i].elements;
      own[i] = std::max<std::int64_t>(0, std::min(next, end) - std::max(at, begin));
      if (own[i] > 0) touched += trained_[i].elements;
      at = next;
    }
    if (touched <= touched_) continue;
    touched_ = touched;
    for (std::size_t i = 0; i < trained_.size(); ++i) trained_[i].own = own[i];
  }
}

// move_to_cpu, empty_cache, then one flat tensor by way of the host, of which the weights are
// views.
void Zero12::flatten_weights(Builder& b, LoadedModel& model) {
  std::vector<HostBufferId> copies;
  for (const Trained& t : trained_) {
    const Bytes bytes = flat(t.elements).bytes();
    b.set_scope(t.scope);
    copies.push_back(b.host_allocate(bytes, HostMemoryKind::anonymous, t.scope,
                                     b.label("weight on its way into the flat one")));
    b.copy(bytes, CopyDirection::device_to_host, true);
    b.release(model.device[t.id]);
  }
  b.empty_cache();
  const ScopeId scope = b.scope("");
  const Bytes bytes = flat(all_).bytes();
  b.set_scope(scope);
  const HostBufferId together =
      b.host_allocate(bytes, HostMemoryKind::anonymous, scope, b.label("trainable weights"));
  b.host_work(bytes / kHostCopy);
  weights_ = gpu(b, bytes, MemoryClass::parameters, scope, "trainable weights");
  b.copy(bytes, CopyDirection::host_to_device, true);
  b.host_free(together);
  for (const Trained& t : trained_) model.device[t.id] = weights_;
  for (HostBufferId copy : copies) b.host_free(copy);
}

// The fp32 partition, its gradient while the states are made, and the buffers of offload.
void Zero12::make_partition(Session& session) {
  Builder& b = session.builder;
  const ScopeId scope = b.scope("");
  const TensorType full{DType::f32, {part_}};
  ParameterState& partition = state_.front();
  const bool offloads = options_.optimizer.anywhere();
  if (offloads) {  // .to("cpu").clone().float()
    const HostBufferId moved = host(b, flat(part_).bytes(), false, scope, "weights of the part");
    const HostBufferId clone = host(b, flat(part_).bytes(), false, scope, "weights of the part");
    host(b, full.bytes(), options_.pins_partition, scope, "fp32 partition");
    b.host_work(full.bytes() / kHostCopy);
    b.host_free(clone);
    b.host_free(moved);
    std::int64_t largest = 0;
    for (const Trained& t : trained_) largest = std::max(largest, t.elements);
    host(b, flat(largest).bytes(), options_.optimizer.pinned, scope, "gradient on its way");
    temporary_ =
        gpu(b, flat(largest).bytes(), MemoryClass::gradients, scope, "gradient on its way");
    host(b, full.bytes(), options_.optimizer.pinned, scope, "fp32 gradient partition");
    if (options_.states_made_in_wrap) update_partition(session, partition);
    return;
  }
  const TensorId clone =
      gpu(b, flat(part_).bytes(), MemoryClass::temporaries, scope, "weights of the part");
  b.launch({&compute::kCopy, {flat(part_)}, {flat(part_)}});
  if (dtype_ == DType::f32) {
    partition.parameter = clone;  // .float() of fp32 is the tensor itself
  } else {
    partition.parameter =
        gpu(b, full.bytes(), MemoryClass::optimizer_states, scope, "fp32 partition");
    b.launch({&compute::kCopy, {flat(part_)}, {full}});
    b.release(clone);
  }
  const TensorId zeros = gpu(b, full.bytes(), MemoryClass::gradients, scope, "zero gradient");
  b.launch({&compute::kFill, {}, {full}});
  if (options_.states_made_in_wrap) {
    partition.gradient = zeros;
    update_partition(session, partition);
    partition.gradient = {};
  }
  b.release(zeros);
}

void Zero12::wrap(Session& session, LoadedModel& model) {
  initialise_module(session, model);
  if (trained_.empty()) return;
  flatten_weights(session.builder, model);
  make_partition(session);
}

// backward(): the buckets are made anew for every backward, whatever there is to reduce.
void Zero12::before_backward(Walker& w, MicroBatch batch) {
  batch_ = batch;
  if (!options_.contiguous_gradients && !options_.optimizer.anywhere()) return;
  Builder& b = w.builder();
  release_buckets(b);
  const ScopeId scope = b.scope("");
  for (int i = 0; i < (options_.overlaps ? 2 : 1); ++i) {
    buckets_.push_back(gpu(b, flat(options_.reduce_bucket).bytes(), MemoryClass::gradients, scope,
                           "reduce bucket"));
  }
}

void Zero12::release_buckets(Builder& b) {
  for (TensorId bucket : buckets_) b.release(bucket);
  buckets_.clear();
}

// Stage 1 keeps whole gradients until the step's last micro-batch; stage 2 reduces each at once.
void Zero12::parameter_gradient(Walker& w, ParameterId p, TensorId gradient) {
  Builder& b = w.builder();
  const std::size_t index = trained_of_[p.value];
  Trained& t = trained_[index];
  const TensorType type = flat(t.elements);
  const auto already = std::ranges::find(bucket_, index, &Bucketed::trained);
  if (t.gradient.valid() || already != bucket_.end()) {
    // Of an earlier micro-batch, or a shared weight.
    b.launch({&compute::kElementwise, {type, type}, {type}});
    b.release(gradient);
    if (already != bucket_.end()) return;
  } else {
    t.gradient = gradient;
  }
  const bool reduces = options_.stage == 2 || (options_.overlaps && batch_.closes_step);
  if (reduces) add_to_bucket(b, index, std::exchange(t.gradient, TensorId{}));
}

// reduce_independent_p_g_buckets_and_remove_grads
void Zero12::add_to_bucket(Builder& b, std::size_t trained, TensorId gradient) {
  const Trained& t = trained_[trained];
  if (bucketed_ + t.elements > options_.reduce_bucket) reduce_bucket(b);
  Bucketed entry{trained, gradient};
  if (!buckets_.empty() && t.elements <= options_.reduce_bucket) {
    b.launch({&compute::kCopy, {flat(t.elements)}, {flat(t.elements)}});
    b.release(std::exchange(entry.own, TensorId{}));
  }
  bucket_.push_back(entry);
  bucketed_ += t.elements;
}

// reduce_ipg_grads, average_tensor: slices of the bucket go to the ranks that own them, each in
// place; without reduce_scatter everything goes to all.
void Zero12::reduce_bucket(Builder& b) {
  if (bucket_.empty()) return;
  const StreamRole stream = reduce_stream();
  b.set_scope(trained_[bucket_.front().trained].scope);
  TensorId together;
  if (buckets_.empty()) {  // buffered_reduce_fallback flattens what it reduces
    together = gpu(b, flat(bucketed_).bytes(), MemoryClass::gradients, b.current_scope(),
                   "gradients together", stream);
    b.launch({&compute::kCopy, {flat(bucketed_)}, {flat(bucketed_)}}, stream);
  }
  if (options_.overlaps) b.wait_stream(stream, StreamRole::compute);
  b.launch({&compute::kElementwise, {flat(bucketed_)}, {flat(bucketed_)}}, stream);
  b.collective(
      options_.reduce_scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
      session_->world, flat(bucketed_).bytes(), stream);
  if (together.valid()) b.release(together, stream);
  for (const Bucketed& gradient : bucket_) keep_own(b, gradient);
  bucket_.clear();
  bucketed_ = 0;
}

// copy_grads_in_partition; the gradients of other ranks' parts are dropped.
void Zero12::keep_own(Builder& b, const Bucketed& gradient) {
  Trained& t = trained_[gradient.trained];
  const StreamRole stream = reduce_stream();
  const auto drop = [&] {
    if (!gradient.own.valid()) return;
    if (options_.overlaps) b.record_stream(gradient.own, stream);
    b.release(gradient.own);
  };
  if (t.own == 0) {
    drop();
    return;
  }
  b.set_scope(t.scope);
  const bool pinned = options_.optimizer.pinned;
  if (options_.optimizer.anywhere()) {
    if (session_->scenario.job.gradient_accumulation_steps.value > 1) {
      // async_accumulate_grad_in_cpu_via_gpu: the whole weight's gradient has a place on the host.
      if (!t.accumulated.valid()) {
        t.accumulated = host(b, flat(t.elements).bytes(), pinned, t.scope, "accumulated gradient");
      }
      b.copy(flat(t.elements).bytes(),
             batch_.first ? CopyDirection::device_to_host : CopyDirection::host_to_device, !pinned,
             pinned, {}, stream);
    }
    if (batch_.closes_step) {
      norm(b, t.own, t.scope, stream);
      const TensorType full{DType::f32, {t.own}};
      const TensorId cast =
          gpu(b, full.bytes(), MemoryClass::gradients, t.scope, "gradient in fp32", stream);
      b.launch({&compute::kCopy, {flat(t.own)}, {full}}, stream);
      b.copy(full.bytes(), CopyDirection::device_to_host, !pinned, pinned, {}, stream);
      b.release(cast, stream);
    }
    drop();
    return;
  }
  if (!own_.valid()) {
    own_ = gpu(b, flat(touched_).bytes(), MemoryClass::gradients, b.scope(""),
               "gradients of the part", stream);
  }
  b.launch({&compute::kCopy, {flat(t.elements)}, {flat(t.elements)}}, stream);
  drop();
}

// independent_gradient_partition_epilogue; in stage 1 only after the step's last micro-batch.
void Zero12::after_backward(Walker& w, MicroBatch batch) {
  Builder& b = w.builder();
  if (options_.stage == 1) {
    if (!batch.closes_step) return;
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (trained_[i].gradient.valid())
        add_to_bucket(b, i, std::exchange(trained_[i].gradient, TensorId{}));
    }
  }
  reduce_bucket(b);
  if (options_.overlaps) {
    b.wait_stream(StreamRole::compute, reduce_stream());
    b.synchronize();
  }
  if (!averaged_.valid()) {
    averaged_ = std::exchange(own_, TensorId{});
  } else if (own_.valid()) {
    b.launch({&compute::kElementwise, {flat(part_), flat(part_)}, {flat(part_)}});
    b.release(std::exchange(own_, TensorId{}));
  }
  release_buckets(b);
}

// step(): the norm, one fp32 gradient of the part, the update, and the new weights to everyone.
void Zero12::update(Session& session) {
  if (trained_.empty()) return;
  Builder& b = session.builder;
  const ScopeId scope = b.scope("");
  const TensorType full{DType::f32, {part_}};
  ParameterState& partition = state_.front();
  b.set_scope(scope);
  const bool offloads = options_.optimizer.anywhere();
  if (!offloads) {
    for (const Trained& t : trained_) {
      if (t.own > 0) norm(b, t.own, t.scope);
    }
  }
  b.set_scope(scope);
  b.collective(CollectiveKind::all_reduce, session.world, Bytes{4}, StreamRole::compute);
  b.synchronize();
  if (offloads) {
    update_partition(session, partition);
    b.host_work(host_update_time(part_));
    // The fp32 part crosses whole and is cast on the device.
    const TensorId crossed =
        gpu(b, full.bytes(), MemoryClass::temporaries, scope, "updated weights in fp32");
    b.copy(full.bytes(), CopyDirection::host_to_device, true, options_.pins_partition);
    b.launch({&compute::kCopy, {full}, {flat(part_)}});
    b.release(crossed);
  } else {
    const TensorId together =
        gpu(b, flat(part_).bytes(), MemoryClass::gradients, scope, "gradient of the part");
    b.launch({&compute::kCopy, {flat(part_)}, {flat(part_)}});
    partition.gradient = together;
    if (dtype_ != DType::f32) {
      partition.gradient =
          gpu(b, full.bytes(), MemoryClass::gradients, scope, "fp32 gradient of the part");
      b.launch({&compute::kCopy, {flat(part_)}, {full}});
      b.release(together);
    }
    b.release(std::exchange(averaged_, TensorId{}));
    b.launch({&compute::kElementwise, {full}, {full}});
    update_partition(session, partition);
    b.release(std::exchange(partition.gradient, TensorId{}));
    b.launch({&compute::kCopy, {full}, {flat(part_)}});
  }
  b.collective(CollectiveKind::all_gather, session.world, flat(all_).bytes(),
               StreamRole::communication);
  b.wait_stream(StreamRole::compute, StreamRole::communication);
}

// The module is whole: its state dict are its own weights.
StateDict Zero12::state_dict(Session& session, const SaveSpec&) {
  Builder& b = session.builder;
  StateDict out;
  for (const Trained& t : trained_) {
    b.retain(weights_);
    out.push_back({t.scope, flat(t.elements).bytes(), weights_, {}});
  }
  return out;
}

}  // namespace sim::program
