#include <algorithm>

#include "sim/compute/kernels/kinds.h"
#include "sim/program/phases/phases.h"

namespace sim::program {

namespace {

// The shards of a published checkpoint hold at most 10 GB (transformers modeling_utils.py,
// max_shard_size of save_pretrained in 4.x) in 16 bits.
constexpr Bytes kShard = 10_GB;
constexpr ByteRate kDiskRead{2e9};   // one local NVMe disk, sequential
constexpr ByteRate kHostCopy{10e9};  // one thread, pageable memory

// from_pretrained without low_cpu_mem_usage: the model is built on the host, then shard after shard
// is read whole (torch.load) and copied in.
void read_checkpoint(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  Bytes in_file{0};
  for (std::uint32_t p = 0; p < g.parameters.size(); ++p) {
    const plan::Parameter& parameter = g.parameters[plan::ParameterId{p}];
    const ScopeId scope = b.scope(parameter.name);
    b.set_scope(scope);
    model.host[plan::ParameterId{p}] = b.host_allocate(
        parameter.type.bytes(), HostMemoryKind::anonymous, scope, b.label("parameter as loaded"));
    b.host_work(parameter.type.bytes() / kHostCopy);
    in_file += Bytes{parameter.type.shape.elements() * 2};
  }
  b.set_scope(b.scope(""));
  while (in_file > Bytes{0}) {
    const Bytes shard = std::min(in_file, kShard);
    const HostBufferId buffer =
        b.host_allocate(shard, HostMemoryKind::anonymous, b.scope(""), b.label("checkpoint shard"));
    b.host_work(shard / kDiskRead);
    b.host_free(buffer);
    in_file -= shard;
  }
}

void make_on_device(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const plan::LayerGraph& g = session.plan.graph;
  for (std::uint32_t p = 0; p < g.parameters.size(); ++p) {
    const plan::Parameter& parameter = g.parameters[plan::ParameterId{p}];
    const ScopeId scope = b.scope(parameter.name);
    b.set_scope(scope);
    model.device[plan::ParameterId{p}] = b.allocate(
        parameter.type.bytes(), {MemoryClass::parameters, scope, b.label("parameter as loaded")});
    b.launch({&compute::kRandom, {}, {parameter.type}});
  }
  for (std::uint32_t i = 0; i < g.buffers.size(); ++i) {
    const plan::Buffer& buffer = g.buffers[plan::BufferId{i}];
    model.buffers[plan::BufferId{i}] = b.allocate(
        buffer.type.bytes(), {MemoryClass::buffers, b.scope(buffer.name), b.label("buffer")});
  }
}

}  // namespace

LoadedModel load_model(Session& session) {
  const plan::LayerGraph& g = session.plan.graph;
  LoadedModel model;
  model.device.resize(g.parameters.size());
  model.host.resize(g.parameters.size());
  model.buffers.resize(g.buffers.size());
  session.builder.phase("load");
  if (session.scenario.job.weights == WeightsSource::random) {
    make_on_device(session, model);
  } else {
    read_checkpoint(session, model);
  }
  return model;
}

}  // namespace sim::program
