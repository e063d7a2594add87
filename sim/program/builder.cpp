#include "sim/program/builder.h"

#include <algorithm>

#include "sim/base/check.h"

namespace sim::program {

namespace {
template <class IdType, class Map, class Items>
IdType intern(Map& ids, Items& items, std::string_view text) {
  const auto [it, fresh] = ids.try_emplace(std::string(text), items.next_id());
  if (fresh) items.push_back(std::string(text));
  return it->second;
}
}  // namespace

ScopeId Builder::scope(std::string_view path) {
  return intern<ScopeId>(scope_ids_, program_.scopes, path);
}
LabelId Builder::label(std::string_view text) {
  return intern<LabelId>(label_ids_, program_.labels, text);
}
MessageId Builder::message(std::string text) {
  return program_.messages.push_back(std::move(text));
}

KernelId Builder::kernel(const compute::Kernel& kernel) {
  for (std::uint32_t i = 0; i < program_.kernels.size(); ++i) {
    if (program_.kernels[KernelId{i}] == kernel) return KernelId{i};
  }
  return program_.kernels.push_back(kernel);
}

void Builder::phase(std::string_view name) {
  emit(BeginPhase{intern<PhaseId>(phase_ids_, program_.phases, name)}, StreamRole::compute);
}

TensorId Builder::allocate(Bytes bytes, Purpose purpose, StreamRole stream) {
  TensorInfo info;
  info.bytes = bytes;
  info.memory_class = purpose.memory_class;
  info.scope = purpose.scope;
  info.label = purpose.label;
  const TensorId id = program_.tensors.push_back(info);
  references_.push_back(1);
  emit(Alloc{id}, stream);
  return id;
}

TensorId Builder::try_allocate(Bytes bytes, Purpose purpose, MessageId warning, StreamRole stream) {
  const TensorId id = allocate(bytes, purpose, stream);
  program_.tensors[id].on_failure = OnFailure::warn;
  program_.tensors[id].warning = warning;
  return id;
}

void Builder::release(TensorId tensor, StreamRole stream) {
  CHECK(references_[tensor] > 0, "a tensor is released once for each reference");
  if (--references_[tensor] == 0) emit(Free{tensor}, stream);
}

void Builder::record_stream(TensorId tensor, StreamRole used_on) {
  emit(RecordStream{tensor, used_on}, StreamRole::compute);
}

void Builder::saved_by(TensorId tensor, LabelId op) {
  TensorInfo& info = program_.tensors[tensor];
  if (!info.saved_by.valid()) info.saved_by = op;
}

void Builder::external(Bytes bytes, std::string_view what) {
  emit(ExternalAlloc{program_.externals.push_back({bytes, label(what)})}, StreamRole::compute);
}

void Builder::empty_cache() { emit(EmptyCache{}, StreamRole::compute); }

void Builder::launch(KernelId kernel, StreamRole stream) { emit(Launch{kernel}, stream); }

void Builder::collective(CollectiveKind kind, GroupId group, Bytes bytes, StreamRole stream) {
  const CollectiveCall call{kind, group, bytes, scope_};
  auto& calls = program_.collectives;
  // A repeated call is the same entry; it stands among the latest few hundred if at all.
  const auto found = std::find(calls.begin(), calls.end(), call);
  const CollectiveId id = found != calls.end()
                              ? CollectiveId{static_cast<std::uint32_t>(found - calls.begin())}
                              : calls.push_back(call);
  emit(Collective{id}, stream);
}

void Builder::copy(Bytes bytes, CopyDirection direction, bool blocking, bool pinned,
                   TensorId source, StreamRole stream) {
  const auto kib = static_cast<std::uint32_t>((bytes.count + 1023) / 1024);
  emit(Copy{kib, direction, blocking, pinned, source}, stream);
}

void Builder::host_work(Duration duration) { emit(HostWork{duration}, StreamRole::compute); }

HostBufferId Builder::host_allocate(Bytes bytes, HostMemoryKind kind, ScopeId scope,
                                    LabelId label) {
  const HostBufferId id = program_.host_buffers.push_back({bytes, kind, scope, label});
  emit(HostAlloc{id}, StreamRole::compute);
  return id;
}

void Builder::host_free(HostBufferId buffer) { emit(HostFree{buffer}, StreamRole::compute); }

void Builder::record_event(EventId event, StreamRole stream) { emit(RecordEvent{event}, stream); }
void Builder::wait_event(EventId event, StreamRole stream) { emit(WaitEvent{event}, stream); }

void Builder::wait_stream(StreamRole waiting, StreamRole awaited) {
  const EventId event = new_event();
  record_event(event, awaited);
  wait_event(event, waiting);
}

void Builder::synchronize(EventId event) { emit(Synchronize{event}, StreamRole::compute); }

std::size_t Builder::begin_loop() {
  emit(Loop{0, 1}, StreamRole::compute);
  return program_.ops.size();
}

void Builder::end_loop(std::size_t begun, std::int64_t times) {
  auto& loop = std::get<Loop>(program_.ops[begun - 1].body);
  loop.ops = static_cast<std::uint32_t>(program_.ops.size() - begun);
  loop.times = static_cast<std::uint32_t>(times);
}

}  // namespace sim::program
