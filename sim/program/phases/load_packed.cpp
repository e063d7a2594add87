// from_pretrained of a model to be packed (transformers _load_state_dict_into_meta_model, quantised
// branch, and bitsandbytes Params4bit / Int8Params): tensor by tensor to the device, in file order,
// packed there; then the buffers (accelerate dispatch_model).
#include <utility>

#include "sim/compute/kernels/kinds.h"
#include "sim/program/phases/loading.h"

namespace sim::program {

namespace {

using plan::BufferId;
using plan::PackedWeights;
using plan::ParameterId;

constexpr ByteRate kDiskRead{2e9};  // one local NVMe disk, sequential

class Packer {
 public:
  Packer(Session& session, LoadedModel& model)
      : b_(session.builder), packed_(*session.plan.implementations.packed), model_(model) {}

  // functional.py quantize_4bit: scales in fp32, codes, the table of 16 values, and the scales
  // quantised in turn around their mean.
  void four_bits(ParameterId id, const plan::Parameter& p) {
    const std::int64_t n = p.matrix.elements();
    const std::int64_t blocks = (n + plan::kPackedBlock - 1) / plan::kPackedBlock;
    const TensorId source = transient(TensorType{packed_.unpacked, p.matrix}, "16-bit weight");
    b_.copy(b_.bytes(source), CopyDirection::host_to_device, true);
    const TensorType scales{DType::f32, {blocks}};
    const TensorId scale = keep(scales, "scales of a packed weight");
    model_.device[id] = keep(p.type, "packed weight");
    b_.launch({&compute::kElementwise, {{packed_.unpacked, p.matrix}}, {p.type, scales}});
    std::vector<TensorId> state{keep({DType::f32, {16}}, "table of codes")};
    if (packed_.nested) {
      state.push_back(keep({DType::f32, {1}}, "mean of the scales"));
      mean_workspace(blocks);
      if (!code_.valid()) code_ = keep({DType::f32, {256}}, "table of 8-bit codes");
      const std::int64_t outer = (blocks + plan::kNestedBlock - 1) / plan::kNestedBlock;
      state.push_back(keep({DType::f32, {outer}}, "scales of scales"));
      state.push_back(keep({DType::u8, {blocks}}, "scales of a packed weight"));
      b_.launch({&compute::kElementwise, {scales}, {{DType::u8, {blocks}}}});
      b_.release(scale);
    } else {
      state.push_back(scale);
    }
    model_.scales[id] = std::move(state);
    b_.release(source);
  }

  // nn/modules.py Int8Params.cuda: fp16 weight, codes by row and (before 0.45) by column, of which
  // the rows stay, and one fp32 statistic a row.
  void eight_bits(ParameterId id, const plan::Parameter& p) {
    const TensorId source = transient(TensorType{DType::f16, p.matrix}, "16-bit weight");
    b_.copy(b_.bytes(source), CopyDirection::host_to_device, true);
    model_.device[id] = keep(p.type, "packed weight");
    TensorId columns;
    if (packed_.transposed_copies) columns = transient(p.type, "8-bit columns");
    model_.scales[id].push_back(keep({DType::f32, {p.matrix[0]}}, "scales of a packed weight"));
    b_.launch({&compute::kElementwise, {{DType::f16, p.matrix}}, {p.type}});
    if (columns.valid()) b_.release(columns);
    b_.release(source);
  }

 private:
  // Sum reductions of more than one block keep partial sums and semaphores
  // (aten/src/ATen/native/cuda/Reduce.cuh): a few KiB from the small pool, freed at once.
  void mean_workspace(std::int64_t) {
    const TensorId partial = transient({DType::f32, {432}}, "partial sums");
    const TensorId semaphores = transient({DType::f32, {1}}, "semaphores");
    b_.release(partial);
    b_.release(semaphores);
  }
  TensorId keep(const TensorType& type, const char* what) {
    return b_.allocate(type.bytes(), {MemoryClass::parameters, b_.current_scope(), b_.label(what)});
  }
  TensorId transient(const TensorType& type, const char* what) {
    return b_.allocate(type.bytes(),
                       {MemoryClass::temporaries, b_.current_scope(), b_.label(what)});
  }

  Builder& b_;
  const PackedWeights& packed_;
  LoadedModel& model_;
  TensorId code_;  // one for all weights
};

// A bias: its layer's weight stands before it.
bool of_packed_layer(const plan::LayerGraph& g, ParameterId p) {
  return p.value > 0 && g.parameters[ParameterId{p.value - 1}].packed() &&
         g.parameters[ParameterId{p.value - 1}].scope == g.parameters[p].scope;
}

// The quantiser's tensors under sharded loading: value.data.to("cpu"), of packed weights and of
// their layers' biases; the scales stay on the device.
void back_to_host(Session& session, LoadedModel& model, ParameterId p) {
  Builder& b = session.builder;
  const Bytes bytes = b.bytes(model.device[p]);
  model.host[p] = b.host_allocate(bytes, HostMemoryKind::anonymous, b.current_scope(),
                                  b.label("parameter as loaded"));
  b.copy(bytes, CopyDirection::device_to_host, true);
  b.release(std::exchange(model.device[p], TensorId{}));
}

// dispatch_model: module by module; each tensor set on the device may end in empty_cache().
void move_buffers(Session& session, LoadedModel& model) {
  Builder& b = session.builder;
  const bool empties = placing_empties_cache(session.software);
  if (empties) b.empty_cache();
  for (BufferId i{0}; i.value < session.plan.graph.buffers.size(); ++i.value) {
    const plan::Buffer& buffer = session.plan.graph.buffers[i];
    b.set_scope(b.scope(buffer.name));
    model.buffers[i] = b.allocate(buffer.type.bytes(),
                                  {MemoryClass::buffers, b.scope(buffer.name), b.label("buffer")});
    b.copy(buffer.type.bytes(), CopyDirection::host_to_device, true);
    b.host_free(model.host_buffers[i]);
    model.host_buffers[i] = {};
    if (empties) b.empty_cache();
  }
}

}  // namespace

OpenFile::OpenFile(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
                   const Shard& shard)
    : builder_(session.builder) {
  const Bytes bytes = files.bytes(session.plan.graph, shard);
  builder_.set_scope(builder_.scope(""));
  buffer_ = builder_.host_allocate(
      bytes, facts.safetensors ? HostMemoryKind::file_backed : HostMemoryKind::anonymous,
      builder_.scope(""), builder_.label("checkpoint file"));
  builder_.host_work(bytes / kDiskRead);
}

OpenFile::~OpenFile() { builder_.host_free(buffer_); }

void load_packed(Session& session, const CheckpointFiles& files, const LoadingFacts& facts,
                 LoadedModel& model, bool wait_on_host) {
  Builder& b = session.builder;
  Packer packer(session, model);
  const bool empties = facts.places_unpacked && placing_empties_cache(session.software);
  const bool four_bits = session.plan.implementations.packed->code != PackedWeights::Code::int8;
  for (const Shard& shard : files.shards) {
    const OpenFile file(session, files, facts, shard);
    for (ParameterId p : shard) {
      const plan::Parameter& parameter = session.plan.graph.parameters[p];
      b.set_scope(b.scope(parameter.name));
      if (!parameter.packed()) {
        model.device[p] = b.allocate(
            parameter.as_loaded().bytes(),
            {MemoryClass::parameters, b.scope(parameter.name), b.label("parameter as loaded")});
        b.copy(parameter.as_loaded().bytes(), CopyDirection::host_to_device, true);
        if (empties && !of_packed_layer(session.plan.graph, p)) b.empty_cache();
      } else if (four_bits) {
        packer.four_bits(p, parameter);
      } else {
        packer.eight_bits(p, parameter);
      }
      if (wait_on_host && (parameter.packed() || of_packed_layer(session.plan.graph, p)))
        back_to_host(session, model, p);
    }
  }
  b.set_scope(b.scope(""));
  if (!wait_on_host) move_buffers(session, model);
}

}  // namespace sim::program
