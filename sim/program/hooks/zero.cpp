#include "sim/program/hooks/zero.h"

#include <algorithm>
#include <utility>

#include "sim/compute/kernels/kinds.h"
#include "sim/plan/module_order.h"
#include "sim/program/optimizers/optimizer.h"

namespace sim::program {

using plan::BufferId;
using plan::Parameter;
using plan::ParameterId;

namespace {

bool is_floating(DType t) {
  return t == DType::f64 || t == DType::f32 || t == DType::f16 || t == DType::bf16;
}

// What preparing the model for training has made of a parameter.
DType prepared_type(const Session& session, const Parameter& p) {
  const bool sixteen = p.loaded == DType::f16 || p.loaded == DType::bf16;
  const bool prepared = session.plan.implementations.casts_unpacked && sixteen && !p.packed() &&
                        p.origin == Parameter::Origin::checkpoint;
  return prepared ? DType::f32 : p.loaded;
}

// One process's share of a server's memory bandwidth: Adam on the host reads the partition, its
// gradient and two states, and writes all but the gradient. No measurement of it is public for the
// nodes at hand: of the host's 200 GB/s a socket, eight processes see this much each.
constexpr ByteRate kHostUpdate{25e9};
constexpr std::int64_t kHostUpdateBytes = 28;  // an element
constexpr ByteRate kSwap{3e9};                 // one local NVMe disk, either way

}  // namespace

Duration ZeroEngine::host_update_time(std::int64_t elements) {
  return Bytes{kHostUpdateBytes * elements} / kHostUpdate;
}

Duration ZeroEngine::swap_time(Bytes bytes) { return bytes / kSwap; }

// Partition, gradient and two states in; all but the gradient out.
Bytes ZeroEngine::swapped_states(std::int64_t elements) {
  return Bytes{kHostUpdateBytes * elements};
}

ZeroEngine::ZeroEngine(const Session& session, ZeroOptions options)
    : options_(options), graph_(session.plan.graph), world_(session.world_size) {}

HostBufferId ZeroEngine::host(Builder& b, Bytes bytes, bool pinned, ScopeId scope,
                              const char* what) {
  const HostBufferId plain =
      b.host_allocate(bytes, HostMemoryKind::anonymous, scope, b.label(what));
  if (!pinned) return plain;
  const HostBufferId block = pinned_.allocate(b, bytes, scope, b.label(what));
  b.host_free(plain);
  return block;
}

void ZeroEngine::free_host(Builder& b, HostBufferId buffer, bool pinned) {
  if (pinned) {
    pinned_.free(buffer);
  } else {
    b.host_free(buffer);
  }
}

// module.half() or module.bfloat16(): Module._apply makes each floating tensor anew, one by one.
// A parameter whose pieces are elsewhere has no elements of its own.
void ZeroEngine::cast_module(Session& session, LoadedModel& model) {
  if (!options_.low) return;
  Builder& b = session.builder;
  const auto cast_one = [&](const std::string& name, const TensorType& from, TensorId& device,
                            HostBufferId& host_buffer, MemoryClass memory_class) {
    if (!is_floating(from.dtype) || from.dtype == *options_.low) return;
    const TensorType to{*options_.low, from.shape};
    const ScopeId scope = b.scope(name);
    b.set_scope(scope);
    if (device.valid()) {
      const TensorId made =
          b.allocate(to.bytes(), {memory_class, scope, b.label("cast by the engine")});
      b.launch({&compute::kCopy, {from}, {to}});
      b.release(std::exchange(device, made));
    } else if (host_buffer.valid()) {
      const HostBufferId made = b.host_allocate(to.bytes(), HostMemoryKind::anonymous, scope,
                                                b.label("cast by the engine"));
      b.host_free(std::exchange(host_buffer, made));
    }
  };
  for (const plan::ModuleTensor& t : plan::children_first(graph_)) {
    if (!t.parameter.valid() && !options_.casts_buffers) continue;
    if (t.parameter.valid()) {
      const Parameter& p = graph_.parameters[t.parameter];
      cast_one(p.name, {prepared_type(session, p), p.type.shape}, model.device[t.parameter],
               model.host[t.parameter], MemoryClass::parameters);
    } else {
      const plan::Buffer& buffer = graph_.buffers[t.buffer];
      cast_one(buffer.name, buffer.type, model.buffers[t.buffer], model.host_buffers[t.buffer],
               MemoryClass::buffers);
    }
  }
}

// module.to(device): every tensor that still waits on the host, on every rank.
void ZeroEngine::move_module(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const auto move = [&](const std::string& name, const TensorType& type, TensorId& device,
                        HostBufferId& host_buffer, MemoryClass memory_class) {
    if (device.valid()) return;
    const ScopeId scope = b.scope(name);
    b.set_scope(scope);
    device = b.allocate(type.bytes(), {memory_class, scope, b.label("moved by the engine")});
    b.copy(type.bytes(), CopyDirection::host_to_device, true);
    if (host_buffer.valid()) b.host_free(std::exchange(host_buffer, HostBufferId{}));
  };
  for (const plan::ModuleTensor& t : plan::children_first(graph_)) {
    if (t.parameter.valid()) {
      const Parameter& p = graph_.parameters[t.parameter];
      move(p.name, p.type, model.device[t.parameter], model.host[t.parameter],
           MemoryClass::parameters);
    } else {
      const plan::Buffer& buffer = graph_.buffers[t.buffer];
      const bool cast = options_.low && options_.casts_buffers && is_floating(buffer.type.dtype);
      move(buffer.name, cast ? TensorType{*options_.low, buffer.type.shape} : buffer.type,
           model.buffers[t.buffer], model.host_buffers[t.buffer], MemoryClass::buffers);
    }
  }
}

// _broadcast_model: parameter by parameter, in place.
void ZeroEngine::broadcast_module(Session& session, const LoadedModel& model) {
  Builder& b = session.builder;
  session.use_communicator();
  for (ParameterId p{0}; p.value < graph_.parameters.size(); ++p.value) {
    b.set_scope(b.scope(graph_.parameters[p].name));
    b.collective(CollectiveKind::broadcast, session.world, b.bytes(model.device[p]),
                 StreamRole::communication);
    b.wait_stream(StreamRole::compute, StreamRole::communication);
  }
}

// engine.py _configure_distributed_model. Where zero.Init has built the model, only its tensors'
// type changes.
void ZeroEngine::initialise_module(Session& session, LoadedModel& model) {
  session_ = &session;
  cast_module(session, model);
  if (std::ranges::any_of(model.taken, [](bool taken) { return taken; })) return;
  move_module(session, model);
  broadcast_module(session, model);
}

void ZeroEngine::zero_grad(Session&, bool) {}  // the engine frees gradients as it reduces them

void ZeroEngine::norm(Builder& b, std::int64_t elements, ScopeId scope, StreamRole stream) {
  constexpr std::int64_t kMost = 250'000'000;  // buffer_size of _constant_buffered_norm2
  const TensorType doubles{DType::f64, {std::min(elements, kMost)}};
  const TensorId t = gpu(b, doubles.bytes(), MemoryClass::temporaries, scope,
                         "gradient in fp64 for its norm", stream);
  b.launch({&compute::kReduction, {doubles}, {{DType::f64, {1}}}}, stream);
  b.release(t, stream);
}

void ZeroEngine::update_partition(Session& session, ParameterState& partition) {
  Builder& b = session.builder;
  const TensorType full{DType::f32, {partition.elements}};
  if (!options_.optimizer.anywhere() && options_.fused_adam) {
    for (const char* name : {"exp_avg", "exp_avg_sq"}) {
      if (partition.optimizer.size() == 2) break;
      partition.optimizer.push_back(
          gpu(b, full.bytes(), MemoryClass::optimizer_states, partition.scope, name));
      b.launch({&compute::kFill, {}, {full}});
    }
    b.launch({&compute::kOptimizer, {full, full, full, full}, {full, full, full}});
    return;
  }
  if (!options_.optimizer.anywhere()) {
    std::vector<ParameterState> one{std::move(partition)};
    session.optimizer->step(session, one);
    partition = std::move(one.front());
    return;
  }
  // DeepSpeedCPUAdam, or the client's optimizer on host tensors: two fp32 states beside the
  // partition.
  if (!partition.paged.empty()) return;
  for (const char* name : {"exp_avg", "exp_avg_sq"}) {
    partition.paged.push_back(
        b.host_allocate(full.bytes(), HostMemoryKind::anonymous, partition.scope, b.label(name)));
  }
}

}  // namespace sim::program
