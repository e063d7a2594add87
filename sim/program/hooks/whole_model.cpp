#include "sim/program/hooks/whole_model.h"

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"
#include "sim/plan/module_order.h"

namespace sim::program {

WholeModel::WholeModel(const Session& session) : graph_(session.plan.graph) {
  state_of_.assign(graph_.parameters.size(), 0);
  for (std::uint32_t p = 0; p < graph_.parameters.size(); ++p) {
    const plan::Parameter& parameter = graph_.parameters[plan::ParameterId{p}];
    if (!parameter.trainable) continue;
    state_of_[p] = state_.size();
    state_.push_back({session.builder.scope(parameter.name),
                      parameter.type.shape.elements(),
                      parameter.type.dtype,
                      false,
                      {},
                      {},
                      {}});
  }
}

void WholeModel::move(Session& session, LoadedModel& model, plan::ParameterId id) {
  Builder& b = session.builder;
  const plan::Parameter& parameter = graph_.parameters[id];
  if (!model.device[id].valid()) {
    b.set_scope(b.scope(parameter.name));
    model.device[id] =
        b.allocate(parameter.type.bytes(),
                   {MemoryClass::parameters, b.scope(parameter.name), b.label("parameter")});
    b.copy(parameter.type.bytes(), CopyDirection::host_to_device, true);
    if (model.host[id].valid()) b.host_free(model.host[id]);
  }
  if (parameter.trainable) state_[state_of_[id.value]].parameter = model.device[id];
}

void WholeModel::move(Session& session, LoadedModel& model, plan::BufferId id) {
  if (model.buffers[id].valid()) return;
  Builder& b = session.builder;
  const plan::Buffer& buffer = graph_.buffers[id];
  const ScopeId scope = b.scope(buffer.name);
  b.set_scope(scope);
  model.buffers[id] =
      b.allocate(buffer.type.bytes(), {MemoryClass::buffers, scope, b.label("buffer")});
  b.copy(buffer.type.bytes(), CopyDirection::host_to_device, true);
  if (model.host_buffers[id].valid()) b.host_free(model.host_buffers[id]);
}

// model.to(device): Module._apply visits a module's children before its own parameters and buffers.
void WholeModel::wrap(Session& session, LoadedModel& model) {
  for (const plan::ModuleTensor& t : plan::children_first(graph_)) {
    if (t.parameter.valid()) {
      move(session, model, t.parameter);
    } else {
      move(session, model, t.buffer);
    }
  }
}

// AccumulateGrad takes the first gradient over and adds later ones in place.
void WholeModel::parameter_gradient(Walker& w, plan::ParameterId p, TensorId gradient) {
  ParameterState& state = state_[state_of_[p.value]];
  if (!state.gradient.valid()) {
    state.gradient = gradient;
    return;
  }
  const TensorType type{state.dtype, {state.elements}};
  w.builder().launch({&compute::kElementwise, {type, type}, {type}});
  w.builder().release(gradient);
}

// clip_grad_norm_: one norm a tensor, a stack, a norm of norms, an in-place scaling.
void WholeModel::clip_gradients(Session& session) {
  Builder& b = session.builder;
  b.set_scope(b.scope(""));
  const Purpose scalar{MemoryClass::temporaries, b.scope(""), b.label("gradient norm")};
  std::vector<TensorId> norms;
  for (const ParameterState& state : state_) {
    norms.push_back(b.allocate(Bytes{4}, scalar));
    b.launch({&compute::kReduction, {{state.dtype, {state.elements}}}, {{DType::f32, {1}}}});
  }
  const TensorId stacked = b.allocate(Bytes{4 * static_cast<std::int64_t>(norms.size())}, scalar);
  for (TensorId t : norms) b.release(t);
  for (const ParameterState& state : state_) {
    const TensorType type{state.dtype, {state.elements}};
    b.launch({&compute::kElementwise, {type}, {type}});
  }
  b.release(stacked);
}

void WholeModel::zero_grad(Session& session, bool to_none) {
  if (!to_none) return;
  for (ParameterState& state : state_) {
    if (state.gradient.valid()) session.builder.release(state.gradient);
    state.gradient = {};
  }
}

// state_dict() of a plain module detaches: the entries are the parameters themselves.
StateDict WholeModel::state_dict(Session& session, const SaveSpec&) {
  Builder& b = session.builder;
  StateDict out;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const ParameterState& state = state_[i];
    b.retain(state.parameter);
    out.push_back({state.scope, b.bytes(state.parameter), state.parameter, {}});
  }
  return out;
}

}  // namespace sim::program
