// Gradients and the optimizer's step (DeepSpeedZeroOptimizer_Stage3).
#include <algorithm>
#include <utility>

#include "sim/compute/kernels/kinds.h"
#include "sim/program/hooks/zero3.h"

namespace sim::program {

using plan::ParameterId;

namespace {
TensorType flat(DType dtype, std::int64_t elements) { return {dtype, {elements}}; }
}  // namespace

void Zero3::parameter_gradient(Walker& w, ParameterId p, TensorId gradient) {
  Builder& b = w.builder();
  for (Bucketed& held : bucket_) {
    if (held.parameter != p) continue;
    // A shared weight: autograd adds the second gradient before the hook runs.
    b.launch({&compute::kElementwise,
              {flat(sharded_[p].dtype, sharded_[p].elements),
               flat(sharded_[p].dtype, sharded_[p].elements)},
              {flat(sharded_[p].dtype, sharded_[p].elements)}});
    b.release(gradient);
    return;
  }
  add_to_bucket(b, p, gradient);
}

// reduce_independent_p_g_buckets_and_remove_grads, __add_grad_to_ipg_bucket.
void Zero3::add_to_bucket(Builder& b, ParameterId p, TensorId gradient) {
  const Sharded& s = sharded_[p];
  if (bucketed_ + s.elements > options_.reduce_bucket && bucketed_ > 0) reduce_bucket(b);
  b.wait_stream(reduce_stream(), StreamRole::compute);
  if (options_.contiguous_gradients && bucketed_ + s.elements <= options_.reduce_bucket) {
    const TensorType type = flat(s.dtype, s.elements);
    b.launch({&compute::kCopy, {type}, {type}}, reduce_stream());
    if (options_.overlaps) b.record_stream(gradient, reduce_stream());
    b.release(gradient);
    bucket_.push_back({p, {}});
  } else {
    bucket_.push_back({p, gradient});
  }
  bucketed_ += s.elements;
}

// __avg_scatter_grads and partition_grads.
void Zero3::reduce_bucket(Builder& b) {
  if (bucket_.empty()) return;
  const StreamRole stream = reduce_stream();
  std::ranges::sort(bucket_, {}, [](const Bucketed& g) { return g.parameter; });
  std::int64_t pieces = 0;
  for (const Bucketed& g : bucket_) pieces += sharded_[g.parameter].piece;
  const DType dtype = sharded_[bucket_.front().parameter].dtype;
  const TensorType all = flat(dtype, pieces * world_);
  b.set_scope(sharded_[bucket_.front().parameter].scope);
  TensorId interleaved;
  // reduce_scatter_coalesced: the ranks' chunks of all tensors side by side, unless it is one
  // tensor that needs no padding. Without reduce_scatter the bucket itself is all-reduced.
  const bool in_place =
      bucket_.size() == 1 && pieces * world_ == sharded_[bucket_.front().parameter].elements;
  const bool all_reduces = !options_.reduce_scatter && !bucket_.front().own.valid();
  if (!in_place && !all_reduces) {
    interleaved = gpu(b, all.bytes(), MemoryClass::gradients, b.current_scope(),
                      "gradients side by side", stream);
    b.launch({&compute::kCopy, {all}, {all}}, stream);
  }
  b.launch({&compute::kElementwise, {all}, {all}}, stream);
  b.collective(all_reduces ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
               session_->world, all.bytes(), stream);
  for (const Bucketed& g : bucket_) {
    const Sharded& s = sharded_[g.parameter];
    const TensorType piece = flat(s.dtype, s.piece);
    if (options_.optimizer.anywhere()) {
      // A pieces' buffer on the host is read back to the device; then its fp32 copy goes out.
      b.copy(piece.bytes(), CopyDirection::device_to_host, !options_.optimizer.pinned,
             options_.optimizer.pinned, {}, stream);
      const TensorId back =
          gpu(b, piece.bytes(), MemoryClass::gradients, s.scope, "gradient piece", stream);
      b.copy(piece.bytes(), CopyDirection::host_to_device, !options_.optimizer.pinned,
             options_.optimizer.pinned, {}, stream);
      if (batch_.closes_step) {
        norm(b, s.piece, s.scope, stream);
        const TensorType full = flat(DType::f32, s.piece);
        const TensorId cast =
            gpu(b, full.bytes(), MemoryClass::gradients, s.scope, "gradient piece in fp32", stream);
        b.launch({&compute::kCopy, {piece}, {full}}, stream);
        b.copy(full.bytes(), CopyDirection::device_to_host, true, options_.optimizer.pinned, {},
               stream);
        b.release(cast, stream);
      }
      b.release(back, stream);
    } else {
      b.launch({&compute::kElementwise, {piece, piece}, {piece}}, stream);
    }
    if (g.own.valid()) {
      if (options_.overlaps) b.record_stream(g.own, stream);
      b.release(g.own);
    }
  }
  if (interleaved.valid()) b.release(interleaved, stream);
  bucket_.clear();
  bucketed_ = 0;
}

// independent_gradient_partition_epilogue
void Zero3::after_backward(Walker& w, MicroBatch) {
  Builder& b = w.builder();
  reduce_bucket(b);
  if (options_.overlaps) b.wait_stream(StreamRole::compute, reduce_stream());
  b.synchronize();
}

// step(): everything is cut again, norms, then one sub-group after the other; what persists is
// gathered for the next step.
void Zero3::update(Session& session) {
  Builder& b = session.builder;
  release_everything(b);
  b.set_scope(b.scope(""));
  if (!options_.optimizer.anywhere()) {
    for (const SubGroup& group : sub_groups_) {
      for (ParameterId p : group.members) norm(b, sharded_[p].piece, sharded_[p].scope);
    }
  }
  b.collective(CollectiveKind::all_reduce, session.world, Bytes{4}, StreamRole::compute);
  b.synchronize();
  for (std::size_t i = 0; i < sub_groups_.size(); ++i) update_sub_group(session, i);
  std::vector<ParameterId> persistent;
  for (ParameterId p{0}; p.value < sharded_.size(); ++p.value) {
    if (sharded_[p].persists) persistent.push_back(p);
  }
  gather(b, persistent);
  for (ParameterId p : persistent) wait(b, p);
}

// _prepare_sub_group, unscale_and_clip_grads, _optimizer_step,
// _reassign_or_swap_out_partitioned_parameters, _release_sub_group.
void Zero3::update_sub_group(Session& session, std::size_t index) {
  Builder& b = session.builder;
  const SubGroup& group = sub_groups_[index];
  ParameterState& partition = state_[index];
  const DType dtype = sharded_[group.members.front()].dtype;
  const DType kept = options_.gradients.value_or(dtype);
  const TensorType low = flat(kept, group.elements), full = flat(DType::f32, group.elements);
  if (options_.optimizer.anywhere()) {
    if (options_.optimizer.device == ZeroOptions::Offload::Device::nvme) {
      b.host_work(swap_time(swapped_states(group.elements)));
    } else {
      update_partition(session, partition);
    }
    b.host_work(host_update_time(group.elements));
    if (!options_.parameters.anywhere())
      b.copy(flat(dtype, group.elements).bytes(), CopyDirection::host_to_device, true, false);
    return;
  }
  TensorId together;
  if (group.members.size() > 1) {  // flatten of one tensor is a view
    together =
        gpu(b, low.bytes(), MemoryClass::gradients, partition.scope, "gradient of the partition");
    b.launch({&compute::kCopy, {low}, {low}});
  }
  if (kept == DType::f32 && together.valid()) {
    partition.gradient = std::exchange(together, TensorId{});
  } else {
    partition.gradient = gpu(b, full.bytes(), MemoryClass::gradients, partition.scope,
                             "fp32 gradient of the partition");
    b.launch({&compute::kCopy, {low}, {full}});
    if (together.valid()) b.release(together);
  }
  b.launch({&compute::kElementwise, {full}, {full}});
  update_partition(session, partition);
  b.launch({&compute::kCopy, {full}, {flat(dtype, group.elements)}});
  b.release(std::exchange(partition.gradient, TensorId{}));
}

}  // namespace sim::program
