// Writes a Program op by op and keeps Python's reference counts, so a Free stands where the script
// would drop the last reference. Tensors start with one reference.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/program/program.h"

namespace sim::program {

// What an allocation is for.
struct Purpose {
  MemoryClass memory_class = MemoryClass::temporaries;
  ScopeId scope;
  LabelId label;
};

class Builder {
 public:
  // Names. Equal text gives the equal id.
  ScopeId scope(std::string_view path);
  LabelId label(std::string_view text);
  MessageId message(std::string text);
  KernelId kernel(const compute::Kernel& kernel);
  const std::string& text(ScopeId id) const { return program_.scopes[id]; }

  void phase(std::string_view name);

  // Device memory.
  TensorId allocate(Bytes bytes, Purpose purpose, StreamRole stream = StreamRole::compute);
  // An allocation whose failure is only warned about; `warning` holds "{}" where the error goes.
  TensorId try_allocate(Bytes bytes, Purpose purpose, MessageId warning,
                        StreamRole stream = StreamRole::compute);
  void retain(TensorId tensor) { ++references_[tensor]; }
  void release(TensorId tensor, StreamRole stream = StreamRole::compute);
  int references(TensorId tensor) const { return references_[tensor]; }
  Bytes bytes(TensorId tensor) const { return program_.tensors[tensor].bytes; }
  void record_stream(TensorId tensor, StreamRole used_on);
  void saved_by(TensorId tensor, LabelId op);
  void external(Bytes bytes, std::string_view label);
  void empty_cache();

  // Work. The scope of an op is the one set last.
  void set_scope(ScopeId scope) { scope_ = scope; }
  ScopeId current_scope() const { return scope_; }
  void launch(KernelId kernel, StreamRole stream = StreamRole::compute);
  void launch(const compute::Kernel& k, StreamRole stream = StreamRole::compute) {
    launch(kernel(k), stream);
  }
  void collective(CollectiveKind kind, GroupId group, Bytes bytes, StreamRole stream);
  void copy(Bytes bytes, CopyDirection direction, bool blocking, bool pinned = false,
            TensorId source = {}, StreamRole stream = StreamRole::compute);
  void host_work(Duration duration);
  HostBufferId host_allocate(Bytes bytes, HostMemoryKind kind, ScopeId scope, LabelId label);
  void host_free(HostBufferId buffer);

  // Order between streams.
  EventId new_event() { return EventId{program_.events++}; }
  void record_event(EventId event, StreamRole stream);
  void wait_event(EventId event, StreamRole stream);
  void wait_stream(StreamRole waiting, StreamRole awaited);  // Stream.wait_stream
  void synchronize(EventId event = {});

  // The ops issued between begin_loop and end_loop run `times` times; what they allocate they free.
  std::size_t begin_loop();
  void end_loop(std::size_t begun, std::int64_t times);

  Program finish() { return std::move(program_); }

 private:
  void emit(Body body, StreamRole stream) { program_.ops.push_back({body, scope_, stream}); }
  Program program_;
  IdVector<TensorId, int> references_;
  ScopeId scope_;
  std::unordered_map<std::string, ScopeId> scope_ids_;
  std::unordered_map<std::string, LabelId> label_ids_;
  std::unordered_map<std::string, PhaseId> phase_ids_;
};

}  // namespace sim::program
