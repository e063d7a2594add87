#include "sim/program/hooks/fsdp.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"

namespace sim::program {

using plan::BlockId;
using plan::ParameterId;

namespace {

// At most this many freed units may be in flight before the host waits (_limiter_utils.py,
// _FreeEventQueue).
constexpr std::size_t kFreeEventsInFlight = 2;

TensorType flat_type(DType dtype, std::int64_t elements) { return {dtype, {elements}}; }

// Host time of one unshard or post-backward of FSDP's Python, in eager operators: on two H200 a
// forward of 32 wrapped blocks took 65 to 70 ms longer than the same blocks without FSDP, 2 ms each
// at 40 us an operator (own recordings, fsdp7b-fp32-mp-ckpt against full7b-fp32-autocast-ckpt).
constexpr std::int64_t kOperatorsPerUnit = 50;

compute::Kernel cast_kernel(DType from, DType to, std::int64_t elements) {
  return {&compute::kCopy, {flat_type(from, elements)}, {flat_type(to, elements)}};
}

}  // namespace

Fsdp::Fsdp(const Session& session, FsdpOptions options)
    : options_(std::move(options)),
      torch_(session.torch),
      graph_(session.plan.graph),
      world_(session.world_size),
      master_(session.scenario.job.precision.weights.value) {
  Builder& b = session.builder;
  units_.push_back({b.scope(""), {}, 0, 0, {}, {}, {}});
  unit_of_parameter_.assign(graph_.parameters.size(), 0);
  for (const plan::Block& block : graph_.blocks) {
    if (block.class_name != options_.wrap) continue;
    Unit unit;
    unit.scope = b.scope(graph_.scopes[block.scope].path);
    for (std::uint32_t p = block.parameters.begin; p < block.parameters.end; ++p) {
      unit_of_parameter_[p] = units_.size();
    }
    units_.push_back(std::move(unit));
  }
  for (std::uint32_t p = 0; p < graph_.parameters.size(); ++p) {
    Unit& unit = units_[unit_of_parameter_[p]];
    unit.parameters.push_back(ParameterId{p});
    unit.elements += graph_.parameters[ParameterId{p}].type.shape.elements();
  }
  for (Unit& unit : units_) {
    unit.shard = (unit.elements + world_ - 1) / world_;
    state_.push_back({unit.scope, unit.shard, master_, true, {}, {}, {}});
  }
  flat_label_ = b.label("flat parameter under construction");
  shard_label_ = b.label("parameter shard");
  gathered_label_ = b.label("gathered parameters");
  low_shard_label_ = b.label("low-precision shard");
  gradient_label_ = b.label("unsharded gradient");
  reduced_label_ = b.label("gradient shard");
  full_label_ = b.label("gathered parameters in full precision");
  clone_label_ = b.label("state-dict clone");
  buffer_label_ = b.label("buffer");
  init_label_ = b.label("lazy initialisation");
}

Fsdp::UnitIndex Fsdp::unit_of(BlockId block) const {
  return unit_of_parameter_[graph_.blocks[block].parameters.begin];
}

Bytes Fsdp::gathered_bytes(const Unit& u) const {
  return flat_type(options_.param_dtype.value_or(master_), padded(u)).bytes();
}

// FlatParamHandle.__init__ and shard(): the unit's tensors move to the device, are concatenated,
// this rank's chunk is cloned, and the flat and the originals go. A rank whose chunk ends in
// padding pads it (one more copy); the first rank's never does.
void Fsdp::construct(Session& session, UnitIndex index, LoadedModel& model) {
  Builder& b = session.builder;
  Unit& unit = units_[index];
  b.set_scope(unit.scope);
  std::vector<TensorId> originals;
  for (ParameterId p : unit.parameters) {
    const plan::Parameter& parameter = graph_.parameters[p];
    if (!model.device[p].valid()) {
      const Bytes bytes = parameter.type.bytes();
      model.device[p] = b.allocate(bytes, {MemoryClass::parameters, b.scope(parameter.name),
                                           b.label("parameter as loaded")});
      b.copy(bytes, CopyDirection::host_to_device, true);
      if (model.host[p].valid()) b.host_free(model.host[p]);
    }
    originals.push_back(model.device[p]);
  }
  const TensorId flat = b.allocate(flat_type(master_, unit.elements).bytes(),
                                   purpose(unit, MemoryClass::parameters, flat_label_));
  b.launch(cast_kernel(master_, master_, unit.elements));
  state_[index].parameter = b.allocate(flat_type(master_, unit.shard).bytes(),
                                       purpose(unit, MemoryClass::parameters, shard_label_));
  b.launch(cast_kernel(master_, master_, unit.shard));
  b.release(flat);
  for (TensorId t : originals) b.release(t);
}

void Fsdp::wrap(Session& session, LoadedModel& model) {
  session_ = &session;
  Builder& b = session.builder;
  // Buffers move with the module that holds them; children are wrapped before their parents.
  buffers_ = model.buffers;
  const auto move_buffers = [&](std::string_view below) {
    for (std::uint32_t i = 0; i < graph_.buffers.size(); ++i) {
      const plan::Buffer& buffer = graph_.buffers[plan::BufferId{i}];
      TensorId& t = buffers_[plan::BufferId{i}];
      if (t.valid() || buffer.name.compare(0, below.size(), below) != 0) continue;
      t = b.allocate(buffer.type.bytes(),
                     {MemoryClass::buffers, b.scope(buffer.name), buffer_label_});
      b.copy(buffer.type.bytes(), CopyDirection::host_to_device, true);
      if (const HostBufferId made = model.host_buffers[plan::BufferId{i}]; made.valid()) {
        b.host_free(made);
      }
    }
  };
  for (UnitIndex u = 1; u < units_.size(); ++u) {
    move_buffers(b.text(units_[u].scope) + ".");
    construct(session, u, model);
  }
  move_buffers("");
  construct(session, 0, model);
}

// init_flat_param_attributes: storages are made at full size and freed at once, unit by unit; root
// first.
void Fsdp::lazy_init(Builder& b) {
  if (options_.cast_buffers) {
    for (std::uint32_t i = 0; i < graph_.buffers.size(); ++i) {
      const plan::Buffer& buffer = graph_.buffers[plan::BufferId{i}];
      const TensorType low{*options_.param_dtype, buffer.type.shape};
      const TensorId cast =
          b.allocate(low.bytes(), {MemoryClass::buffers, b.scope(buffer.name), buffer_label_});
      b.launch({&compute::kCopy, {buffer.type}, {low}});
      b.release(buffers_[plan::BufferId{i}]);
      buffers_[plan::BufferId{i}] = cast;
    }
  }
  for (const Unit& unit : units_) {
    b.set_scope(unit.scope);
    const auto transient = [&](Bytes bytes) {
      b.release(b.allocate(bytes, purpose(unit, MemoryClass::temporaries, init_label_)));
    };
    if (options_.param_dtype) transient(flat_type(*options_.param_dtype, unit.shard).bytes());
    transient(gathered_bytes(unit));
    if (options_.param_dtype) transient(flat_type(master_, padded(unit)).bytes());
  }
  initialised_ = true;
}

// _unshard: cast this rank's shard on the pre-unshard stream, gather on the unshard stream.
void Fsdp::gather(Builder& b, UnitIndex index) {
  Unit& unit = units_[index];
  if (unit.gathered.valid()) return;
  session_->use_communicator();
  b.host_work(session_->scenario.cluster.node.operator_overhead * kOperatorsPerUnit);
  TensorId low;
  if (options_.param_dtype) {
    low = b.allocate(flat_type(*options_.param_dtype, unit.shard).bytes(),
                     purpose(unit, MemoryClass::temporaries, low_shard_label_),
                     StreamRole::pre_unshard);
    b.launch(cast_kernel(master_, *options_.param_dtype, unit.shard), StreamRole::pre_unshard);
    b.wait_stream(StreamRole::unshard, StreamRole::pre_unshard);
  }
  if (options_.limit_all_gathers && free_events_.size() >= kFreeEventsInFlight) {
    b.synchronize(free_events_.front());
    free_events_.pop_front();
  }
  unit.gathered =
      b.allocate(gathered_bytes(unit), purpose(unit, MemoryClass::parameters, gathered_label_),
                 StreamRole::unshard);
  b.collective(CollectiveKind::all_gather, session_->world, gathered_bytes(unit),
               StreamRole::unshard);
  if (low.valid()) {
    b.record_stream(low, StreamRole::unshard);
    b.release(low);
  }
}

void Fsdp::use(Builder& b, UnitIndex index) {
  gather(b, index);
  b.wait_stream(StreamRole::compute, StreamRole::unshard);
}

void Fsdp::reshard(Builder& b, UnitIndex index) {
  Unit& unit = units_[index];
  if (!unit.gathered.valid()) return;
  b.record_stream(unit.gathered, StreamRole::compute);
  b.release(unit.gathered);
  unit.gathered = {};
  if (!options_.limit_all_gathers) return;
  if (event_of_position_.size() <= position_) event_of_position_.push_back(b.new_event());
  const EventId event = event_of_position_[position_++];
  b.record_event(event, StreamRole::compute);
  free_events_.push_back(event);
}

void Fsdp::before_forward(Walker& w, MicroBatch batch) {
  Builder& b = w.builder();
  batch_ = batch;
  position_ = 0;
  if (!initialised_) lazy_init(b);
  b.set_scope(units_[0].scope);
  b.wait_stream(StreamRole::pre_unshard, StreamRole::compute);
  b.wait_stream(StreamRole::unshard, StreamRole::compute);
  use(b, 0);
}

void Fsdp::before_block_forward(Walker& w, BlockId block, bool) {
  if (const UnitIndex unit = unit_of(block); unit != 0) use(w.builder(), unit);
}

void Fsdp::after_block_forward(Walker& w, BlockId block, bool) {
  if (const UnitIndex unit = unit_of(block); unit != 0 && options_.reshard_after_forward) {
    reshard(w.builder(), unit);
  }
}

// The root's pre-backward hook: it is still gathered, and it prefetches the last unit.
void Fsdp::before_backward(Walker& w, MicroBatch) {
  use(w.builder(), 0);
  if (options_.backward_prefetch && units_.size() > 1) gather(w.builder(), units_.size() - 1);
}

void Fsdp::before_block_backward(Walker& w, BlockId block) {
  const UnitIndex unit = unit_of(block);
  if (unit == 0) return;
  use(w.builder(), unit);
  if (options_.backward_prefetch && unit > 1) gather(w.builder(), unit - 1);
}

void Fsdp::parameter_gradient(Walker& w, ParameterId p, TensorId gradient) {
  Unit& unit = units_[unit_of_parameter_[p.value]];
  for (auto& [id, held] : unit.view_gradients) {
    if (id != p) continue;
    // A shared weight: the second gradient is added in place.
    const TensorType type = flat_type(DType::u8, w.builder().bytes(held).count);
    w.builder().launch({&compute::kElementwise, {type, type}, {type}});
    w.builder().release(gradient);
    return;
  }
  unit.view_gradients.emplace_back(p, gradient);
}

void Fsdp::after_block_backward(Walker& w, BlockId block) {
  if (const UnitIndex unit = unit_of(block); unit != 0) reduce(w.builder(), unit);
}

void Fsdp::after_backward(Walker& w, MicroBatch) {
  Builder& b = w.builder();
  reduce(b, 0);
  if (batch_.last) b.wait_stream(StreamRole::compute, StreamRole::post_backward);
}

// The views' gradients are concatenated by the backward of torch.split, then the flat parameter's
// post-backward hook reshards and, unless under no_sync, reduces and casts on its own stream.
void Fsdp::reduce(Builder& b, UnitIndex index) {
  Unit& unit = units_[index];
  ParameterState& state = state_[index];
  const DType dtype = options_.param_dtype.value_or(master_);
  b.set_scope(unit.scope);
  const TensorId flat = b.allocate(flat_type(dtype, unit.elements).bytes(),
                                   purpose(unit, MemoryClass::gradients, gradient_label_));
  b.launch(cast_kernel(dtype, dtype, unit.elements));
  for (const auto& [p, gradient] : unit.view_gradients) b.release(gradient);
  unit.view_gradients.clear();
  if (unit.unsharded_gradient.valid()) {
    const TensorType type = flat_type(dtype, unit.elements);
    b.launch({&compute::kElementwise, {type, type}, {type}});
    b.release(flat);
  } else {
    unit.unsharded_gradient = flat;
  }
  // _should_free_in_backward: under no_sync a unit that stays gathered after forward stays so here
  // too.
  if (batch_.last || options_.reshard_after_forward) reshard(b, index);
  if (!batch_.last) return;

  constexpr StreamRole kStream = StreamRole::post_backward;
  b.wait_stream(kStream, StreamRole::compute);
  TensorId input = unit.unsharded_gradient;
  const bool pads = torch_.gradient_always_copied || padded(unit) != unit.elements;
  if (pads) {
    input = b.allocate(flat_type(dtype, padded(unit)).bytes(),
                       purpose(unit, MemoryClass::gradients, gradient_label_), kStream);
    b.launch(cast_kernel(dtype, dtype, padded(unit)), kStream);
  }
  TensorId reduced = b.allocate(flat_type(dtype, unit.shard).bytes(),
                                purpose(unit, MemoryClass::gradients, reduced_label_), kStream);
  b.collective(CollectiveKind::reduce_scatter, session_->world,
               flat_type(dtype, padded(unit)).bytes(), kStream);
  if (pads) b.release(input);
  if (dtype != master_) {
    const TensorId full =
        b.allocate(flat_type(master_, unit.shard).bytes(),
                   purpose(unit, MemoryClass::gradients, reduced_label_), kStream);
    b.launch(cast_kernel(dtype, master_, unit.shard), kStream);
    b.release(reduced);
    reduced = full;
  }
  if (state.gradient.valid()) {
    const TensorType type = flat_type(master_, unit.shard);
    b.launch({&compute::kElementwise, {type, type}, {type}}, kStream);
    b.release(reduced);
  } else {
    state.gradient = reduced;
  }
  b.record_stream(unit.unsharded_gradient, kStream);
  b.release(unit.unsharded_gradient);
  unit.unsharded_gradient = {};
}

// FSDP.clip_grad_norm_: one norm a shard, their norm, an all_reduce, an in-place scaling.
void Fsdp::clip_gradients(Session& session) {
  Builder& b = session.builder;
  b.set_scope(units_[0].scope);
  const Purpose scalar{MemoryClass::temporaries, units_[0].scope, b.label("gradient norm")};
  std::vector<TensorId> norms;
  for (UnitIndex u = 0; u < units_.size(); ++u) {
    norms.push_back(b.allocate(Bytes{4}, scalar));
    b.launch(
        {&compute::kReduction, {flat_type(master_, units_[u].shard)}, {flat_type(DType::f32, 1)}});
  }
  const auto count = static_cast<std::int64_t>(norms.size());
  const TensorId stacked = b.allocate(Bytes{4 * count}, scalar);
  const TensorId total = b.allocate(Bytes{4}, scalar);
  b.launch({&compute::kReduction, {flat_type(DType::f32, count)}, {flat_type(DType::f32, 1)}});
  for (TensorId t : norms) b.release(t);
  b.collective(CollectiveKind::all_reduce, session.world, Bytes{4}, StreamRole::compute);
  for (const Unit& unit : units_) {
    const TensorType type = flat_type(master_, unit.shard);
    b.launch({&compute::kElementwise, {type}, {type}});
  }
  b.release(stacked);
  b.release(total);
}

void Fsdp::zero_grad(Session& session, bool to_none) {
  if (!to_none) return;  // zeroed in place: the shards stay
  for (ParameterState& state : state_) {
    if (state.gradient.valid()) session.builder.release(state.gradient);
    state.gradient = {};
  }
}

}  // namespace sim::program
