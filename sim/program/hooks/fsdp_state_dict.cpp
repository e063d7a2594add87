// FULL_STATE_DICT of FSDP1 (torch/distributed/fsdp/_state_dict_utils.py, _unshard_param_utils.py).
// The root is gathered in full precision first and stays so; each child is gathered, its entries
// cloned, and freed; the root's own entries are cloned last. A clone that fails is only warned
// about.
#include <fmt/format.h>

#include "sim/compute/kernels/kinds.h"
#include "sim/program/hooks/fsdp.h"

namespace sim::program {

namespace {

// The words of torch 2.0's _common_unshard_post_state_dict_hook; 1.13 names no rank. "{}" is the
// error.
std::string clone_warning(const std::string& name, bool names_rank) {
  return fmt::format(
      "Failed to clone() tensor with name {}{}. This may mean that this state_dict entry could "
      "point to invalid memory regions after returning from state_dict() call if this parameter is "
      "managed by FSDP. Please check clone implementation of {}. Error: {{}}",
      name, names_rank ? " on rank {rank}" : "", name);
}

}  // namespace

TensorId Fsdp::gather_full_precision(Session& session, const Unit& unit, StreamRole stream) {
  Builder& b = session.builder;
  b.set_scope(unit.scope);
  const Bytes bytes = TensorType{master_, {padded(unit)}}.bytes();
  const TensorId full =
      b.allocate(bytes, purpose(unit, MemoryClass::parameters, full_label_), stream);
  session.use_communicator();
  b.collective(CollectiveKind::all_gather, session.world, bytes, stream);
  if (stream != StreamRole::compute) b.wait_stream(StreamRole::compute, stream);
  return full;
}

void Fsdp::save_unit(Session& session, UnitIndex index, const SaveSpec& save, StateDict& out) {
  Builder& b = session.builder;
  const Unit& unit = units_[index];
  const bool keeps = save.ranks.value == SaveSpec::Ranks::all || session.first_rank;
  const bool on_host = save.place.value == SaveSpec::Place::cpu;
  for (plan::ParameterId p : unit.parameters) {
    if (!keeps) continue;
    const plan::Parameter& parameter = graph_.parameters[p];
    const ScopeId scope = b.scope(parameter.name);
    const Bytes bytes = parameter.type.bytes();
    b.set_scope(scope);
    StateDictEntry entry{scope, bytes, {}, {}};
    if (on_host) {
      entry.host = b.host_allocate(bytes, HostMemoryKind::anonymous, scope, clone_label_);
      b.host_work(bytes / 10_GBps);  // memcpy of one thread, pageable memory
    } else {
      entry.device =
          b.try_allocate(bytes, {MemoryClass::parameters, scope, clone_label_},
                         b.message(clone_warning(parameter.name, torch_.warning_names_rank)));
      b.launch({&compute::kCopy, {parameter.type}, {parameter.type}});
    }
    out.push_back(entry);
  }
}

StateDict Fsdp::state_dict(Session& session, const SaveSpec& save) {
  Builder& b = session.builder;
  if (!initialised_) lazy_init(b);
  b.synchronize();
  const StreamRole stream =
      torch_.state_dict_on_compute_stream ? StreamRole::compute : StreamRole::unshard;
  const bool offload = save.place.value == SaveSpec::Place::cpu;
  const bool keeps = save.ranks.value == SaveSpec::Ranks::all || session.first_rank;
  StateDict out;

  // With offload the gathered flat moves to the host at once (FlatParamHandle.to_cpu) and the
  // device copy is freed; on leaving, its storage is made again and freed. Ranks that keep nothing
  // only gather and free.
  const auto gathered = [&](const Unit& unit) {
    const TensorId full = gather_full_precision(session, unit, stream);
    HostBufferId host;
    if (offload && keeps) {
      const Bytes bytes = b.bytes(full);
      host = b.host_allocate(bytes, HostMemoryKind::anonymous, unit.scope, full_label_);
      b.copy(bytes, CopyDirection::device_to_host, true, false, full);
    }
    const bool stays = !offload && keeps;
    if (!stays) b.release(full);
    return std::pair{stays ? full : TensorId{}, host};
  };
  const auto leave = [&](const Unit& unit, std::pair<TensorId, HostBufferId> held) {
    b.set_scope(unit.scope);
    if (held.second.valid()) {
      b.release(b.allocate(TensorType{master_, {padded(unit)}}.bytes(),
                           purpose(unit, MemoryClass::parameters, full_label_), stream));
      b.host_free(held.second);
    }
    if (held.first.valid()) {
      if (stream != StreamRole::compute) b.record_stream(held.first, StreamRole::compute);
      b.release(held.first);
    }
  };

  const auto root = gathered(units_[0]);
  for (UnitIndex u = 1; u < units_.size(); ++u) {
    const auto held = gathered(units_[u]);
    save_unit(session, u, save, out);
    leave(units_[u], held);
  }
  save_unit(session, 0, save, out);
  leave(units_[0], root);
  return out;
}

}  // namespace sim::program
