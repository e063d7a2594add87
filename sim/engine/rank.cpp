#include "sim/engine/rank.h"

#include <algorithm>

namespace sim::engine {

namespace {

// A failure that was found while the host still had to wait happens when the wait is over.
struct SetTime {
  Instant at;
  void operator()(Fits&) const {}
  template <class Failure>
  void operator()(Failure& failure) const {
    failure.at = at;
  }
};

}  // namespace

ProcessMemory::ProcessMemory(const Machine& machine)
    : device(machine.gpu.total, machine.gpu.used_by_others),
      driver(device),
      allocator(machine.allocator, machine.allocator_settings, driver, machine.gpu.total) {
  if (machine.allowed) allocator.allow(*machine.allowed);
}

ProcessMemory::ProcessMemory(const ProcessMemory& other)
    : device(other.device), driver(other.driver, device), allocator(other.allocator, driver) {}

Rank::Rank(Identity identity, const Machine& machine)
    : self_(std::move(identity)),
      machine_(&machine),
      loop_end_(self_.program_end),
      streams_(self_.ranks.front(), self_.recording.slices),
      events_(program().events),
      memory_(machine),
      tensors_(program().tensors.size()),
      externals_(program().externals.size()),
      host_buffers_(program().host_buffers.size()) {
  phases_.hold({}, memory_.device.used());
  memory_.allocator.record(self_.recording.allocator);
}

Rank::Rank(const Rank& start, Identity identity) : Rank(start) {
  self_ = std::move(identity);
  streams_.speak_for(self_.ranks.front());
  loop_end_ = self_.program_end;
  events_.resize(program().events);
  tensors_.resize(program().tensors.size());
  externals_.resize(program().externals.size());
  host_buffers_.resize(program().host_buffers.size());
}

Stop Rank::run(const Turn& horizon) {
  horizon_ = horizon;
  while (!failure_) {
    if (next_op_ == loop_end_) [[unlikely]] {
      if (loops_.empty()) return self_.parts ? Stop::parts : finish();
      end_iteration();
      continue;
    }
    const program::Op& op = program().ops[next_op_];
    const Stop stop = std::visit([&](const auto& body) { return exec(body, op); }, op.body);
    if (stop == Stop::none) [[likely]] {
      step_over();
    } else if (stop == Stop::waits) {
      if (!failure_) step_over();
      return stop;
    } else if (stop != Stop::failed) {
      return stop;
    }
  }
  // The first failure in time ends the job, so whoever is behind goes first.
  return behind() ? Stop::yield : Stop::failed;
}

// A process ends when its GPU is done.
Stop Rank::finish() {
  if (!drained_) {
    drained_ = true;
    if (wait_for_device() == Stop::waits) return Stop::waits;
  }
  finished_ = true;
  return Stop::finished;
}

Stop Rank::exec(const program::Launch& body, const program::Op& op) {
  if (wait_for_room(op.stream) == Stop::blocked) return Stop::blocked;
  spend(costs().launch);
  ++launches_;
  const std::uint32_t text =
      self_.recording.labels != nullptr ? self_.recording.labels->kernels[body.kernel] : 0;
  streams_.run(op.stream, host_now_, costs().kernels[body.kernel],
               label(SliceKind::kernel, text, op.scope));
  return Stop::none;
}

Stop Rank::exec(const program::Collective&, const program::Op& op) {
  if (wait_for_room(op.stream) == Stop::blocked) return Stop::blocked;
  return behind() ? Stop::yield : Stop::collective;
}

void Rank::enter(std::uint32_t call, program::CollectiveId id) {
  const program::Op& at = op();
  spend(costs().launch);
  ++launches_;
  const std::uint32_t text =
      self_.recording.labels != nullptr ? self_.recording.labels->collectives[id] : 0;
  streams_.enter(at.stream, host_now_, call, label(SliceKind::collective, text, at.scope));
}

Stop Rank::exec(const program::Copy& body, const program::Op& op) {
  if (body.source.valid() && tensors_[body.source].dangling) {
    const memory::MemoryStats& stats = memory_.allocator.stats();
    failure_ = Crashed{ranks().front(),
                       phase_name(),
                       scope_name(op.scope),
                       program().crash_message,
                       stats.allocated.current,
                       stats.reserved.current,
                       memory_.device.free(),
                       memory_.device.total(),
                       host_now_};
    return Stop::failed;
  }
  if (wait_for_room(op.stream) == Stop::blocked) return Stop::blocked;
  spend(costs().launch);
  ++launches_;
  const std::uint32_t text = self_.recording.labels != nullptr ? self_.recording.labels->copy : 0;
  streams_.run(op.stream, host_now_, costs().copy(body), label(SliceKind::copy, text, op.scope));
  // A copy from or to pageable memory returns when the host's side is done, whatever was asked
  // (CUDA runtime API, "API synchronization behavior").
  const bool staged = body.direction != program::CopyDirection::device_to_device && !body.pinned;
  return body.blocking || staged ? wait_for(streams_.record(op.stream)) : Stop::none;
}

Stop Rank::exec(const program::HostWork& body, const program::Op& op) {
  const Instant begin = host_now_;
  spend(body.duration);
  if (self_.recording.slices != nullptr) {
    host_slice(SliceKind::host_work, begin, self_.recording.labels->host_work, op.scope);
  }
  return Stop::none;
}

Stop Rank::exec(const program::HostAlloc&, const program::Op&) {
  return behind() ? Stop::yield : Stop::host_memory;
}

Stop Rank::exec(const program::HostFree&, const program::Op&) {
  return behind() ? Stop::yield : Stop::host_memory;
}

Stop Rank::exec(const program::BeginPhase&, const program::Op&) {
  return behind() ? Stop::yield : Stop::phase;
}

Stop Rank::exec(const program::RecordEvent& body, const program::Op& op) {
  events_[body.event.value] = streams_.record(op.stream);
  return Stop::none;
}

// An event that was never recorded holds nobody, as in CUDA.
Stop Rank::exec(const program::WaitEvent& body, const program::Op& op) {
  streams_.wait(op.stream, events_[body.event.value]);
  return Stop::none;
}

Stop Rank::exec(const program::Synchronize& body, const program::Op&) {
  return body.event.valid() ? wait_for(events_[body.event.value]) : wait_for_device();
}

Stop Rank::wait_for(const Mark& mark) {
  if (!streams_.known(mark)) {
    host_waits_for_[host_waits_++] = mark;
    waiting_ = true;
    return Stop::waits;
  }
  const Instant begin = host_now_;
  host_now_ = std::max(host_now_, streams_.when(mark));
  if (self_.recording.slices != nullptr && begin < host_now_) {
    host_slice(SliceKind::wait, begin, self_.recording.labels->waiting, {});
  }
  return Stop::none;
}

// A launch into a full queue returns only when the oldest work of the stream has ended.
Stop Rank::wait_for_room(StreamRole stream) {
  const Mark room = streams_.room(stream);
  if (!room.ticket.valid() && room.at <= host_now_) return Stop::none;
  return wait_for(room) == Stop::waits ? Stop::blocked : Stop::none;
}

Stop Rank::wait_for_device() {
  Stop stop = Stop::none;
  for (int role = 0; role < kStreamRoles; ++role) {
    if (wait_for(streams_.record(static_cast<StreamRole>(role))) == Stop::waits) stop = Stop::waits;
  }
  return stop;
}

bool Rank::wake() {
  if (!waiting_) return false;
  Mark* const end = host_waits_for_ + host_waits_;
  if (!std::all_of(host_waits_for_, end, [&](const Mark& mark) { return streams_.known(mark); })) {
    return false;
  }
  waiting_ = false;
  host_waits_ = 0;
  for (const Mark* mark = host_waits_for_; mark != end; ++mark) wait_for(*mark);
  spend(owed_);
  owed_ = {};
  if (failure_) std::visit(SetTime{host_now_}, *failure_);
  return true;
}

bool Rank::exchange_buffer(program::HostBufferId buffer, bool allocated) {
  const bool before = host_buffers_[buffer] != 0;
  host_buffers_[buffer] = allocated ? 1 : 0;
  return before;
}

Label Rank::label(SliceKind kind, std::uint32_t text, ScopeId scope) const {
  const bool named = self_.recording.labels != nullptr && scope.valid();
  return {kind, named ? self_.recording.labels->scopes[scope] : ScopeId{}, text};
}

void Rank::host_slice(SliceKind kind, Instant begin, std::uint32_t text, ScopeId scope) {
  const Label what = label(kind, text, scope);
  self_.recording.slices->push_back(
      {ranks().front(), StreamRole::compute, true, kind, begin, host_now_, what.scope, text});
}

std::string Rank::scope_name(ScopeId scope) const {
  return scope.valid() ? program().scopes[scope] : std::string{};
}

RankRecord Rank::close(std::uint32_t number) {
  phases_.end(host_now_);
  RankRecord record;
  record.ranks = ranks();
  record.phases = phases_.records(program());
  record.warnings = warnings();
  record.ops_done = next_op_;
  record.program = number;
  for (const CaughtFailure& caught : caught_) record.failed_allocs.push_back(caught.tensor.value);
  record.external = memory_.device.external();
  record.total = memory_.device.total();
  record.finished = host_now_;
  record.launches = launches_;
  if (self_.recording.allocator != nullptr) record.segments = memory_.allocator.snapshot();
  return record;
}

}  // namespace sim::engine
