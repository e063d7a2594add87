#include "sim/engine/common_start.h"

#include <algorithm>
#include <variant>

namespace sim::engine {

namespace {

using program::Program;

// How many entries at the start of two tables are equal.
template <class IdType, class T>
std::uint32_t equal_entries(const IdVector<IdType, T>& a, const IdVector<IdType, T>& b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::uint32_t>(ends.first - a.begin());
}

// Whether an op means the same in two programs. Visited with the bodies of both.
class Same {
 public:
  Same(const program::Workload& workload, const Program& a, const Program& b)
      : workload_(workload),
        a_(a),
        b_(b),
        scopes_(equal_entries(a.scopes, b.scopes)),
        labels_(equal_entries(a.labels, b.labels)),
        messages_(equal_entries(a.messages, b.messages)) {}

  bool operator()(const program::Op& x, const program::Op& y) const {
    return x.stream == y.stream && x.scope == y.scope && named(x.scope) &&
           std::visit(*this, x.body, y.body);
  }

  bool operator()(program::Alloc x, program::Alloc y) const { return same(x.tensor, y.tensor); }
  bool operator()(program::Free x, program::Free y) const { return same(x.tensor, y.tensor); }
  bool operator()(program::RecordStream x, program::RecordStream y) const {
    return same(x.tensor, y.tensor) && x.used_on == y.used_on;
  }
  bool operator()(program::Launch x, program::Launch y) const {
    return x.kernel == y.kernel && a_.kernels[x.kernel] == b_.kernels[x.kernel];
  }
  bool operator()(program::Collective x, program::Collective y) const {
    if (x.call != y.call) return false;
    const program::CollectiveCall& call = a_.collectives[x.call];
    return call == b_.collectives[y.call] && named(call.scope) &&
           workload_.groups[call.group].ranks.size() == workload_.program_of.size();
  }
  bool operator()(const program::Copy& x, const program::Copy& y) const {
    return x.bytes_kib == y.bytes_kib && x.direction == y.direction && x.blocking == y.blocking &&
           x.pinned == y.pinned &&
           (x.source.valid() ? same(x.source, y.source) : !y.source.valid());
  }
  bool operator()(program::HostWork x, program::HostWork y) const {
    return x.duration == y.duration;
  }
  bool operator()(program::HostAlloc x, program::HostAlloc y) const {
    return same(x.buffer, y.buffer);
  }
  bool operator()(program::HostFree x, program::HostFree y) const {
    return same(x.buffer, y.buffer);
  }
  bool operator()(program::EmptyCache, program::EmptyCache) const { return true; }
  bool operator()(program::ExternalAlloc x, program::ExternalAlloc y) const {
    return same(x.memory, y.memory);
  }
  bool operator()(program::ExternalFree x, program::ExternalFree y) const {
    return same(x.memory, y.memory);
  }
  bool operator()(program::RecordEvent x, program::RecordEvent y) const {
    return x.event == y.event;
  }
  bool operator()(program::WaitEvent x, program::WaitEvent y) const { return x.event == y.event; }
  bool operator()(program::Synchronize x, program::Synchronize y) const {
    return x.event == y.event;
  }
  bool operator()(program::BeginPhase x, program::BeginPhase y) const {
    return x.phase == y.phase && a_.phases[x.phase] == b_.phases[y.phase];
  }
  bool operator()(program::Loop x, program::Loop y) const {
    return x.ops == y.ops && x.times == y.times;
  }
  template <class X, class Y>
  bool operator()(const X&, const Y&) const {
    return false;
  }

 private:
  bool named(ScopeId id) const { return !id.valid() || id.value < scopes_; }
  bool named(program::LabelId id) const { return !id.valid() || id.value < labels_; }
  bool named(program::MessageId id) const { return !id.valid() || id.value < messages_; }

  bool same(program::TensorId x, program::TensorId y) const {
    if (x != y) return false;
    const program::TensorInfo& info = a_.tensors[x];
    return info == b_.tensors[y] && named(info.scope) && named(info.label) &&
           named(info.saved_by) && named(info.warning);
  }
  bool same(program::HostBufferId x, program::HostBufferId y) const {
    if (x != y) return false;
    const program::HostBuffer& buffer = a_.host_buffers[x];
    return buffer == b_.host_buffers[y] && named(buffer.scope) && named(buffer.label);
  }
  bool same(program::ExternalId x, program::ExternalId y) const {
    if (x != y) return false;
    const program::ExternalMemory& memory = a_.externals[x];
    return memory == b_.externals[y] && named(memory.label);
  }

  const program::Workload& workload_;
  const Program& a_;
  const Program& b_;
  std::uint32_t scopes_, labels_, messages_;
};

// The last place up to `end` that is in no loop of the program.
std::uint32_t outside_loops(const Program& program, std::uint32_t end) {
  for (std::uint32_t op = 0; op < end; ++op) {
    const auto* loop = std::get_if<program::Loop>(&program.ops[op].body);
    if (loop == nullptr) continue;
    if (loop->ops > end - op - 1) return op;
    op += loop->ops;
  }
  return end;
}

}  // namespace

std::uint32_t common_start(const program::Workload& workload) {
  const Program& first = workload.programs.front();
  // Compared with itself for the groups that it names.
  auto common = static_cast<std::uint32_t>(first.ops.size());
  for (const Program& other : workload.programs) {
    if (other.crash_message != first.crash_message) return 0;
    const Same same(workload, first, other);
    const auto end = std::min<std::size_t>(common, other.ops.size());
    std::uint32_t op = 0;
    while (op < end && same(first.ops[op], other.ops[op])) ++op;
    common = op;
  }
  return outside_loops(first, common);
}

}  // namespace sim::engine
