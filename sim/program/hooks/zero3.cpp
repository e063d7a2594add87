#include "sim/program/hooks/zero3.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"

namespace sim::program {

using plan::ParameterId;

namespace {
TensorType flat(DType dtype, std::int64_t elements) { return {dtype, {elements}}; }
constexpr ByteRate kHostCopy{10e9};  // one thread, pageable memory
}  // namespace

Zero3::Zero3(const Session& session, ZeroOptions options) : ZeroEngine(session, options) {
  Builder& b = session.builder;
  std::int64_t alone = 0, persistent = 0;
  for (const plan::Parameter& p : graph_.parameters) {
    Sharded s;
    s.scope = b.scope(p.name);
    s.elements = p.type.shape.elements();
    s.piece = (s.elements + world_ - 1) / world_;
    s.dtype = p.type.dtype;
    s.trainable = p.trainable;
    // mark_persistent_parameters
    s.persists = s.elements <= options_.persistence_threshold &&
                 persistent + s.elements <= options_.persistence_limit;
    if (s.persists) persistent += s.elements;
    sharded_.push_back(s);
    if (p.trainable) pieces_ += s.piece;
  }
  // _create_fp16_sub_groups: whole parameters until the limit is reached.
  for (ParameterId p{0}; p.value < sharded_.size(); ++p.value) {
    if (!sharded_[p].trainable) continue;
    if (sub_groups_.empty() || alone >= options_.sub_group) {
      sub_groups_.emplace_back();
      alone = 0;
    }
    sub_groups_.back().members.push_back(p);
    sub_groups_.back().elements += sharded_[p].piece;
    alone += sharded_[p].piece;
  }
  for (const SubGroup& group : sub_groups_) {
    state_.push_back({b.scope(""), group.elements, DType::f32, true, {}, {}, {}});
  }
  parameters_of_node_.resize(graph_.nodes.size());
  for (plan::OpNodeId n{0}; n.value < graph_.nodes.size(); ++n.value) {
    std::vector<ParameterId>& own = parameters_of_node_[n.value];
    for (const plan::Operand& o :
         plan::LayerGraph::slice(graph_.operands, graph_.nodes[n].inputs)) {
      if (o.kind == plan::Operand::Kind::parameter) own.push_back(o.parameter());
    }
    std::ranges::sort(own);
    own.erase(std::ranges::unique(own).begin(), own.end());
  }
}

const std::vector<ParameterId>& Zero3::parameters_of(plan::OpNodeId node) {
  return parameters_of_node_[node.value];
}

// _partition_param of a parameter that has no piece yet: the piece is made where pieces live, this
// rank's part copied, the whole freed.
void Zero3::partition(Builder& b, ParameterId p) {
  Sharded& s = sharded_[p];
  if (!s.device_piece.valid() && !s.host_piece.valid() && !s.swapped) {
    b.set_scope(s.scope);
    if (swaps_parameters()) {
      swap_out(b, s);
    } else if (options_.parameters.anywhere()) {
      s.host_piece =
          host(b, piece_bytes(s), options_.parameters.pinned, s.scope, "piece of a parameter");
      b.copy(piece_bytes(s), CopyDirection::device_to_host, true, options_.parameters.pinned);
    } else {
      s.device_piece =
          gpu(b, piece_bytes(s), MemoryClass::parameters, s.scope, "piece of a parameter");
      b.launch({&compute::kCopy, {flat(s.dtype, s.piece)}, {flat(s.dtype, s.piece)}});
    }
  }
  b.release(std::exchange(s.whole, TensorId{}));
}

// AsyncPartitionedParameterSwapper: all its buffers are one page-locked tensor, made with the first
// piece.
void Zero3::swap_out(Builder& b, Sharded& s) {
  if (!swap_buffers_made_) {
    const ZeroOptions::Offload& o = options_.parameters;
    host(b, flat(s.dtype, o.buffers * o.buffer_size).bytes(), true, b.scope(""),
         "buffers of swapped parameters");
    swap_buffers_made_ = true;
  }
  b.copy(piece_bytes(s), CopyDirection::device_to_host, true, true);
  b.host_work(swap_time(piece_bytes(s)));
  s.swapped = true;
}

// zero.Init: a module's tensors are made whole on the device; after its constructor each is
// broadcast and cut (_post_init_method, _zero_init_param).
void Zero3::take(Session& session, std::span<const ParameterId> module) {
  Builder& b = session.builder;
  session.use_communicator();
  for (ParameterId p : module) {
    Sharded& s = sharded_[p];
    b.set_scope(s.scope);
    s.whole = gpu(b, bytes(s), MemoryClass::parameters, s.scope, "parameter under construction");
  }
  for (ParameterId p : module) {
    b.set_scope(sharded_[p].scope);
    b.collective(CollectiveKind::broadcast, session.world, bytes(sharded_[p]),
                 StreamRole::communication);
    b.wait_stream(StreamRole::compute, StreamRole::communication);
    partition(b, p);
  }
}

// GatheredParameters(modifier_rank=0) around a module's copies: all ranks gather, the first one
// fills, all receive and cut again.
void Zero3::load(Session& session, std::span<const ParameterId> module) {
  Builder& b = session.builder;
  gather(b, {module.begin(), module.end()});
  for (ParameterId p : module) wait(b, p);
  for (ParameterId p : module) {
    Sharded& s = sharded_[p];
    b.set_scope(s.scope);
    if (session.first_rank) b.copy(bytes(s), CopyDirection::host_to_device, true);
    b.collective(CollectiveKind::broadcast, session.world, bytes(s), StreamRole::communication);
    b.wait_stream(StreamRole::compute, StreamRole::communication);
    b.release(std::exchange(s.whole, TensorId{}));
  }
}

void Zero3::wrap(Session& session, LoadedModel& model) {
  initialise_module(session, model);
  Builder& b = session.builder;
  // DeepSpeedZeRoOffload._convert_to_zero_parameters: whatever zero.Init has not cut.
  for (ParameterId p{0}; p.value < sharded_.size(); ++p.value) {
    if (model.taken[p]) continue;
    Sharded& s = sharded_[p];
    b.set_scope(s.scope);
    if (!model.device[p].valid()) {
      model.device[p] = gpu(b, bytes(s), MemoryClass::parameters, s.scope, "parameter to cut");
      b.copy(bytes(s), CopyDirection::host_to_device, true);
      if (model.host[p].valid()) b.host_free(std::exchange(model.host[p], HostBufferId{}));
    }
    session.use_communicator();
    b.collective(CollectiveKind::broadcast, session.world, bytes(s), StreamRole::communication);
    b.wait_stream(StreamRole::compute, StreamRole::communication);
    s.whole = std::exchange(model.device[p], TensorId{});
    partition(b, p);
  }
  if (sub_groups_.empty()) return;
  make_flat_pieces(b);
  make_states(session);
  make_gradient_buffers(b);
  touch_trainable(b);
}

// _create_fp16_partitions_with_defragmentation: the trainable pieces become parts of one flat
// tensor, on the device by way of the host.
void Zero3::make_flat_pieces(Builder& b) {
  const ScopeId scope = b.scope("");
  b.set_scope(scope);
  const DType dtype = sharded_[sub_groups_.front().members.front()].dtype;
  const bool on_host = options_.parameters.anywhere();
  const std::int64_t room =
      swaps_parameters() ? std::min(pieces_, options_.parameters.in_memory) : pieces_;
  if (room == 0) return;
  const Bytes all = flat(dtype, room).bytes();
  // param_groups_fp16_flat_cpu_memory is page-locked whatever the configuration says.
  const HostBufferId flat_host =
      on_host ? host(b, all, true, scope, "trainable pieces")
              : b.host_allocate(all, HostMemoryKind::anonymous, scope, b.label("trainable pieces"));
  std::int64_t placed = 0;
  for (const SubGroup& group : sub_groups_) {
    // A sub-group that does not fit into what may stay in memory remains on NVMe.
    if (placed + group.elements > room) continue;
    placed += group.elements;
    for (ParameterId p : group.members) {
      Sharded& s = sharded_[p];
      if (s.swapped) {
        s.swapped = false;
        s.host_piece = flat_host;
        continue;
      }
      if (on_host) {
        free_host(b, s.host_piece, options_.parameters.pinned);
        s.host_piece = flat_host;
        continue;
      }
      b.copy(piece_bytes(s), CopyDirection::device_to_host, true);
      b.release(s.device_piece);
    }
  }
  if (on_host) return;
  b.empty_cache();
  const TensorId together = gpu(b, all, MemoryClass::parameters, scope, "trainable pieces");
  b.copy(all, CopyDirection::host_to_device, true);
  b.host_free(flat_host);
  for (const SubGroup& group : sub_groups_) {
    for (ParameterId p : group.members) sharded_[p].device_piece = together;
  }
}

// _create_fp32_partitions and initialize_optimizer_states.
void Zero3::make_states(Session& session) {
  Builder& b = session.builder;
  const ScopeId scope = b.scope("");
  const DType dtype = sharded_[sub_groups_.front().members.front()].dtype;
  std::int64_t largest = 0;
  const bool swaps = options_.optimizer.device == ZeroOptions::Offload::Device::nvme;
  for (std::size_t i = 0; i < sub_groups_.size(); ++i) {
    const std::int64_t n = sub_groups_[i].elements;
    largest = std::max(largest, n);
    if (swaps) continue;                  // written to the device's files straight away
    if (options_.optimizer.anywhere()) {  // .to("cpu").clone().float()
      const HostBufferId clone = host(b, flat(dtype, n).bytes(), false, scope, "clone of pieces");
      host(b, flat(DType::f32, n).bytes(), false, scope, "fp32 partition");
      b.host_work(flat(DType::f32, n).bytes() / kHostCopy);
      b.host_free(clone);
    } else {
      const TensorId clone =
          gpu(b, flat(dtype, n).bytes(), MemoryClass::temporaries, scope, "clone of pieces");
      b.launch({&compute::kCopy, {flat(dtype, n)}, {flat(dtype, n)}});
      state_[i].parameter = gpu(b, flat(DType::f32, n).bytes(), MemoryClass::optimizer_states,
                                scope, "fp32 partition");
      b.launch({&compute::kCopy, {flat(dtype, n)}, {flat(DType::f32, n)}});
      b.release(clone);
    }
  }
  if (swaps) {
    // The swapper's page-locked buffers, each for the largest partition
    // (PartitionedOptimizerSwapper).
    for (std::int64_t i = 0; i < options_.optimizer.buffers; ++i)
      host(b, flat(DType::f32, largest).bytes(), true, scope, "buffer of swapped states");
    return;
  }
  const Bytes gradient = flat(DType::f32, largest).bytes();
  if (options_.optimizer.anywhere()) {
    const HostBufferId zeros = host(b, gradient, false, scope, "zero gradient");
    for (std::size_t i = 0; i < sub_groups_.size(); ++i) {
      host(b, flat(DType::f32, sub_groups_[i].elements).bytes(), options_.optimizer.pinned, scope,
           "fp32 gradient partition");
      if (options_.states_made_in_wrap) update_partition(session, state_[i]);
    }
    b.host_free(zeros);
    return;
  }
  const TensorId zeros = gpu(b, gradient, MemoryClass::gradients, scope, "zero gradient");
  b.launch({&compute::kFill, {}, {flat(DType::f32, largest)}});
  for (ParameterState& partition : state_) {
    if (!options_.states_made_in_wrap) break;
    partition.gradient = zeros;
    update_partition(session, partition);
    partition.gradient = {};
  }
  b.release(zeros);
}

// _setup_for_real_optimizer: the bucket stays for good; the pieces of gradients lie where the
// optimizer does.
void Zero3::make_gradient_buffers(Builder& b) {
  const ScopeId scope = b.scope("");
  const DType dtype = sharded_[sub_groups_.front().members.front()].dtype;
  b.set_scope(scope);
  if (options_.contiguous_gradients) {
    bucket_memory_ = gpu(b, flat(dtype, options_.reduce_bucket).bytes(), MemoryClass::gradients,
                         scope, "reduce bucket");
  }
  const DType kept = options_.gradients.value_or(dtype);
  const Bytes all = flat(kept, pieces_).bytes();
  if (options_.optimizer.anywhere()) {
    host(b, all, options_.optimizer.pinned, scope, "gradient pieces");
  } else {
    gradient_pieces_ = gpu(b, all, MemoryClass::gradients, scope, "gradient pieces");
    b.launch({&compute::kFill, {}, {flat(kept, pieces_)}});
  }
}

// create_reduce_and_remove_grad_hooks: each trainable parameter is gathered once and cut again.
void Zero3::touch_trainable(Builder& b) {
  for (const SubGroup& group : sub_groups_) {
    for (ParameterId p : group.members) {
      gather(b, {p});
      wait(b, p);
      b.release(std::exchange(sharded_[p].whole, TensorId{}));
    }
  }
  available_ = 0;
}

// _zero3_consolidated_16bit_state_dict: module by module gathered on all ranks; the first keeps
// each on the host. Without it the model's own file has no weights.
StateDict Zero3::state_dict(Session& session, const SaveSpec&) {
  Builder& b = session.builder;
  StateDict out;
  if (!options_.gathers_on_save) return out;
  release_everything(b);
  for (std::uint32_t p = 0; p < sharded_.size();) {
    std::vector<ParameterId> module;
    const ScopeId scope = graph_.parameters[ParameterId{p}].scope;
    for (; p < sharded_.size() && graph_.parameters[ParameterId{p}].scope == scope; ++p)
      module.push_back(ParameterId{p});
    gather(b, module);
    for (ParameterId id : module) wait(b, id);
    for (ParameterId id : module) {
      Sharded& s = sharded_[id];
      b.set_scope(s.scope);
      if (session.first_rank) {
        const HostBufferId kept = b.host_allocate(bytes(s), HostMemoryKind::anonymous, s.scope,
                                                  b.label("state-dict entry on the host"));
        b.copy(bytes(s), CopyDirection::device_to_host, true);
        out.push_back({s.scope, bytes(s), {}, kept});
      }
      b.release(std::exchange(s.whole, TensorId{}));
    }
  }
  return out;
}

}  // namespace sim::program
