// Adapters' preparation (peft prepare_model_for_kbit_training and get_peft_model): 16-bit
// parameters that stay unpacked become fp32 one by one, then each target's pair is made on the host
// and moved to where its weight is.
#include "sim/compute/kernels/kinds.h"
#include "sim/program/phases/phases.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

using plan::Parameter;
using plan::ParameterId;

void cast_rest(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  const bool casts_packed = preparation_casts_packed(session.software);
  for (ParameterId p{0}; p.value < g.parameters.size(); ++p.value) {
    const Parameter& parameter = g.parameters[p];
    const bool sixteen = parameter.loaded == DType::f16 || parameter.loaded == DType::bf16;
    if (parameter.origin != Parameter::Origin::checkpoint || !sixteen || model.taken[p]) continue;
    // Packed data of a 16-bit storage type: an early release takes what waits on the host for
    // plain.
    if (parameter.packed() && !(casts_packed && model.host[p].valid())) continue;
    const ScopeId scope = b.scope(parameter.name);
    const TensorType full{DType::f32, parameter.type.shape};
    b.set_scope(scope);
    if (model.device[p].valid()) {
      const TensorId cast = b.allocate(
          full.bytes(), {MemoryClass::parameters, scope, b.label("parameter cast to fp32")});
      b.launch({&compute::kCopy, {parameter.as_loaded()}, {full}});
      b.release(model.device[p]);
      model.device[p] = cast;
    } else {
      const HostBufferId cast = b.host_allocate(full.bytes(), HostMemoryKind::anonymous, scope,
                                                b.label("parameter cast to fp32"));
      b.host_free(model.host[p]);
      model.host[p] = cast;
    }
  }
}

void add_adapters(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  const bool dense = adapters_make_dense_layer(session.software);
  ParameterId base;  // the latest weight of the checkpoint: the one that adapters stand beside
  for (ParameterId p{0}; p.value < g.parameters.size(); ++p.value) {
    const Parameter& parameter = g.parameters[p];
    if (parameter.origin != Parameter::Origin::adapter) {
      if (parameter.matrix.rank == 2) base = p;
      continue;
    }
    const ScopeId scope = b.scope(parameter.name);
    b.set_scope(scope);
    const bool first =
        p.value > 0 && g.parameters[ParameterId{p.value - 1}].origin != Parameter::Origin::adapter;
    if (dense && first) {
      const TensorType whole{DType::f32, g.parameters[base].matrix};
      b.host_free(b.host_allocate(whole.bytes(), HostMemoryKind::anonymous, scope,
                                  b.label("dense weight of the adapted layer")));
    }
    const HostBufferId made = b.host_allocate(TensorType{DType::f32, parameter.matrix}.bytes(),
                                              HostMemoryKind::anonymous, scope, b.label("adapter"));
    if (!model.device[base].valid() && !model.taken[base]) {
      model.host[p] = made;
      continue;
    }
    model.device[p] = b.allocate(parameter.as_loaded().bytes(),
                                 {MemoryClass::parameters, scope, b.label("adapter")});
    b.copy(parameter.as_loaded().bytes(), CopyDirection::host_to_device, true);
    b.host_free(made);
  }
}

}  // namespace

bool prepares_adapters(const Scenario& scenario, bool trainer_always, Assumptions& assumptions) {
  Diagnostics ignored;  // the adapters' own reader has filed them
  ReadContext context{ignored, &assumptions};
  ConfigReader reader(*scenario.job.lora, "job.lora", context);
  return reader
      .optional<bool>("prepare", scenario.job.quantization || trainer_always,
                      trainer_always ? "the trainer does so with every adapted model"
                                     : "done to models with packed weights")
      .value;
}

void prepare_adapters(Session& session, LoadedModel& model) {
  if (!session.plan.implementations.adapters) return;
  session.builder.phase("prepare");
  if (session.plan.implementations.casts_unpacked) cast_rest(session, model);
  add_adapters(session, model);
}

}  // namespace sim::program
