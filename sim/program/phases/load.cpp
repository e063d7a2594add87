#include <span>
#include <vector>

#include "sim/compute/kernels/kinds.h"
#include "sim/program/phases/loading.h"
#include "sim/program/phases/phases.h"

namespace sim::program {

namespace {

using plan::BufferId;
using plan::ParameterId;

constexpr ByteRate kHostCopy{10e9};  // one thread, pageable memory

// Weights and buffers of a model that is built on the host. Pages of weights that are only declared
// cost nothing until a file's tensor is copied in.
void to_host(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
             LoadedModel& model) {
  Builder& b = session.builder;
  for (const Shard& shard : files.shards) {
    const OpenFile file(session, files, facts, shard);
    for (ParameterId p : shard) {
      const plan::Parameter& parameter = session.plan.graph.parameters[p];
      const ScopeId scope = b.scope(parameter.name);
      const bool same_type = parameter.loaded == files.dtype;
      const bool mapped =
          facts.safetensors && same_type && (facts.assigns_mapped || facts.low_memory_default);
      b.set_scope(scope);
      model.host[p] = b.host_allocate(
          parameter.as_loaded().bytes(),
          mapped ? HostMemoryKind::file_backed : HostMemoryKind::anonymous, scope,
          b.label(mapped ? "parameter mapped from its file" : "parameter as loaded"));
      b.host_work(parameter.as_loaded().bytes() / kHostCopy);
    }
  }
}

// Parameters of one module stand together; those that the file has values for.
template <class Range, class Action>
void for_each_module(const plan::LayerGraph& g, const Range& ids, Action act) {
  std::vector<ParameterId> module;
  const auto flush = [&] {
    if (!module.empty()) act(std::span<const ParameterId>(module));
    module.clear();
  };
  for (ParameterId p : ids) {
    if (g.parameters[p].origin == plan::Parameter::Origin::adapter) continue;
    if (!module.empty() && g.parameters[module.back()].scope != g.parameters[p].scope) flush();
    module.push_back(p);
  }
  flush();
}

// Inside the constructor's context tensors are made on the device; buffers stay there.
void build_taken(Session& session, Strategy& strategy, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  std::vector<ParameterId> all;
  for (ParameterId p{0}; p.value < g.parameters.size(); ++p.value) {
    all.push_back(p);
    model.taken[p] = g.parameters[p].origin != plan::Parameter::Origin::adapter;
  }
  BufferId next{0};
  const auto make_buffers = [&](std::uint32_t before) {
    for (; next.value < g.buffers.size() && g.buffers[next].after <= before; ++next.value) {
      const plan::Buffer& buffer = g.buffers[next];
      const ScopeId scope = b.scope(buffer.name);
      b.set_scope(scope);
      model.buffers[next] =
          b.allocate(buffer.type.bytes(), {MemoryClass::buffers, scope, b.label("buffer as made")});
    }
  };
  for_each_module(g, all, [&](std::span<const ParameterId> module) {
    make_buffers(module.front().value);
    strategy.take(session, module);
  });
  make_buffers(static_cast<std::uint32_t>(g.parameters.size()));
}

void load_taken(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
                Strategy& strategy) {
  for (const Shard& shard : files.shards) {
    const OpenFile file(session, files, facts, shard);
    for_each_module(session.plan.graph, shard,
                    [&](std::span<const ParameterId> module) { strategy.load(session, module); });
  }
}

void make_on_device(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  for (ParameterId p{0}; p.value < g.parameters.size(); ++p.value) {
    const plan::Parameter& parameter = g.parameters[p];
    if (parameter.origin == plan::Parameter::Origin::adapter) continue;
    const ScopeId scope = b.scope(parameter.name);
    b.set_scope(scope);
    model.device[p] = b.allocate(parameter.as_loaded().bytes(),
                                 {MemoryClass::parameters, scope, b.label("parameter as loaded")});
    b.launch({&compute::kRandom, {}, {parameter.as_loaded()}});
  }
  for (BufferId i{0}; i.value < g.buffers.size(); ++i.value) {
    const plan::Buffer& buffer = g.buffers[i];
    model.buffers[i] = b.allocate(buffer.type.bytes(),
                                  {MemoryClass::buffers, b.scope(buffer.name), b.label("buffer")});
  }
}

// Buffers have memory from the start, also where weights are only declared (init_empty_weights).
void make_host_buffers(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  for (BufferId i{0}; i.value < g.buffers.size(); ++i.value) {
    const plan::Buffer& buffer = g.buffers[i];
    const ScopeId scope = b.scope(buffer.name);
    b.set_scope(scope);
    model.host_buffers[i] = b.host_allocate(buffer.type.bytes(), HostMemoryKind::anonymous, scope,
                                            b.label("buffer as made"));
  }
}

}  // namespace

void copy_reference(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  for (ParameterId p{0}; p.value < g.parameters.size(); ++p.value) {
    const plan::Parameter& parameter = g.parameters[p];
    if (parameter.origin != plan::Parameter::Origin::reference) continue;
    const ScopeId scope = b.scope(parameter.name);
    b.set_scope(scope);
    model.host[p] = b.host_allocate(parameter.as_loaded().bytes(), HostMemoryKind::anonymous, scope,
                                    b.label("copy of a parameter"));
    b.host_work(parameter.as_loaded().bytes() / kHostCopy);
  }
}

LoadedModel load_model(Session& session, Strategy& strategy) {
  const plan::LayerGraph& g = session.plan.graph;
  LoadedModel model;
  model.device.resize(g.parameters.size());
  model.taken.resize(g.parameters.size());
  model.host.resize(g.parameters.size());
  model.scales.resize(g.parameters.size());
  model.buffers.resize(g.buffers.size());
  model.host_buffers.resize(g.buffers.size());
  session.builder.phase("load");
  if (session.scenario.job.weights == WeightsSource::random) {
    make_on_device(session, model);
    return model;
  }
  const LoadingFacts facts = loading_facts(session.scenario, session.software);
  const CheckpointFiles files = checkpoint_files(session.scenario, g, facts);
  const bool packs = session.plan.implementations.packed.has_value();
  if (!packs && strategy.takes_modules()) {
    build_taken(session, strategy, model);
    load_taken(session, files, facts, strategy);
    return model;
  }
  make_host_buffers(session, model);
  if (packs) {
    load_packed(session, files, facts, model, strategy.packed_waits_on_host());
  } else {
    to_host(session, files, facts, model);
  }
  return model;
}

}  // namespace sim::program
