#include "sim/report/ledger.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace sim::report {

namespace {

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    parts.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return parts;
}

std::string what_is(const program::Program& program, const program::TensorInfo& tensor) {
  if (tensor.saved_by.valid()) {
    return "saved by " + program.labels[tensor.saved_by];
  }
  return tensor.label.valid() ? program.labels[tensor.label] : std::string();
}

template <class Line>
void largest_first(std::vector<Line>& lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.bytes > b.bytes; });
}

// A moment in the life of one rank class.
struct Moment {
  const RankRecord* record = nullptr;
  std::size_t end = 0;  // first op that had not happened
  Ledger ledger;        // everything but its lines
};

const RankRecord* record_of(const Timeline& timeline, RankId rank) {
  for (const RankRecord& record : timeline.ranks) {
    if (std::find(record.ranks.begin(), record.ranks.end(), rank) != record.ranks.end()) {
      return &record;
    }
  }
  return nullptr;
}

std::string name_of(const std::string& what, const std::string& scope) {
  if (scope.empty()) return what.empty() ? "an allocation" : what;
  return what.empty() ? scope : fmt::format("{} of {}", what, scope);
}

std::optional<Moment> highest_peak(const Timeline& timeline) {
  const RankRecord* record = nullptr;
  const PhaseRecord* phase = nullptr;
  for (const RankRecord& r : timeline.ranks) {
    for (const PhaseRecord& p : r.phases) {
      if (phase != nullptr && p.peak_allocated <= phase->peak_allocated) continue;
      record = &r;
      phase = &p;
    }
  }
  if (phase == nullptr) return std::nullopt;
  Moment moment{record, std::size_t{phase->peak_op} + 1, {}};
  moment.ledger.phase = phase->name;
  moment.ledger.moment = "at the highest allocated figure of the run";
  moment.ledger.allocated = phase->peak_allocated;
  moment.ledger.reserved = phase->peak_reserved;
  moment.ledger.external = record->external;
  moment.ledger.free = record->total - phase->peak_device_used;
  return moment;
}

// The last allocation whose failure was caught: the figures are those of its warning.
std::optional<Moment> last_caught_failure(const program::Workload& workload,
                                          const RankRecord& record) {
  if (record.failed_allocs.empty() || record.warnings.empty()) return std::nullopt;
  const program::Program& program = workload.programs[record.program];
  const program::TensorId failed{record.failed_allocs.back()};
  const program::TensorInfo& tensor = program.tensors[failed];
  const WarningRecord& warning = record.warnings.back();
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto* alloc = std::get_if<program::Alloc>(&program.ops[i].body);
    if (alloc == nullptr || alloc->tensor != failed) continue;
    Moment moment{&record, i, {}};
    moment.ledger.phase = warning.phase;
    moment.ledger.moment =
        fmt::format("when the {} failed", name_of(what_is(program, tensor), warning.scope));
    moment.ledger.allocated = warning.allocated;
    moment.ledger.reserved = warning.reserved;
    moment.ledger.free = warning.free;
    moment.ledger.external = record.total - warning.reserved - warning.free;
    return moment;
  }
  return std::nullopt;
}

// The rank stopped at its next op.
Moment where_stopped(const RankRecord& record, const std::string& phase, std::string moment_text,
                     Bytes allocated, Bytes reserved, Bytes free) {
  Moment moment{&record, record.ops_done, {}};
  moment.ledger.phase = phase;
  moment.ledger.moment = std::move(moment_text);
  moment.ledger.allocated = allocated;
  moment.ledger.reserved = reserved;
  moment.ledger.free = free;
  moment.ledger.external = record.total - reserved - free;
  return moment;
}

std::optional<Moment> worst_moment(const program::Workload& workload, const Timeline& timeline) {
  if (const auto* oom = std::get_if<CudaOutOfMemory>(&timeline.verdict)) {
    if (const RankRecord* record = record_of(timeline, oom->rank)) {
      const std::string name = name_of(oom->tensor, oom->scope);
      return where_stopped(*record, oom->phase, fmt::format("when {} could not be allocated", name),
                           oom->allocated, oom->reserved, oom->free);
    }
  }
  if (const auto* crash = std::get_if<Crashed>(&timeline.verdict)) {
    if (const RankRecord* record = record_of(timeline, crash->rank)) {
      if (auto moment = last_caught_failure(workload, *record)) return moment;
      return where_stopped(*record, crash->phase, "when the run crashed", crash->allocated,
                           crash->reserved, crash->free);
    }
  }
  return highest_peak(timeline);
}

// Applies the allocations and frees of ops [begin, end).
void follow(const program::Program& program, std::size_t begin, std::size_t end,
            std::vector<bool>& alive) {
  for (std::size_t i = begin; i < end; ++i) {
    const program::Body& body = program.ops[i].body;
    if (const auto* alloc = std::get_if<program::Alloc>(&body)) alive[alloc->tensor.value] = true;
    if (const auto* free = std::get_if<program::Free>(&body)) alive[free->tensor.value] = false;
  }
}

// First op and end of the outermost loop body around op `at`.
std::optional<std::pair<std::size_t, std::size_t>> loop_around(const program::Program& program,
                                                               std::size_t at) {
  for (std::size_t i = 0; i < at; ++i) {
    const auto* loop = std::get_if<program::Loop>(&program.ops[i].body);
    if (loop == nullptr) continue;
    const std::size_t end = std::min(i + 1 + loop->ops, program.ops.size());
    if (at < end && loop->times > 1) return std::pair{i + 1, end};
    i = std::min(end, at) - 1;
  }
  return std::nullopt;
}

Bytes total(const program::Program& program, const std::vector<bool>& alive,
            const std::vector<std::uint32_t>& failed) {
  Bytes sum;
  for (std::uint32_t i = 0; i < alive.size(); ++i) {
    if (alive[i]) sum += program.tensors[program::TensorId{i}].bytes;
  }
  for (const std::uint32_t tensor : failed) {
    if (alive[tensor]) sum -= program.tensors[program::TensorId{tensor}].bytes;
  }
  return sum;
}

}  // namespace

std::string owner_of(std::string_view scope) {
  if (scope.empty()) return "(root)";
  std::vector<std::string> parts = split_path(scope);
  std::size_t last_number = parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!all_digits(parts[i])) continue;
    parts[i] = "*";
    last_number = i;
  }
  const bool repeated = last_number < parts.size();
  if (repeated) {
    parts.resize(std::min(parts.size(), last_number + 2));
  } else if (parts.size() > 1 && (parts.back() == "weight" || parts.back() == "bias")) {
    parts.pop_back();
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

std::vector<LedgerLine> alive_before(const program::Program& program, std::size_t end,
                                     const std::vector<std::uint32_t>& failed, Bytes allocated) {
  end = std::min(end, program.ops.size());
  std::vector<bool> alive(program.tensors.size(), false);
  follow(program, 0, end, alive);
  if (const auto loop = loop_around(program, end)) {
    std::vector<bool> later = alive;
    follow(program, end, loop->second, later);
    follow(program, loop->first, end, later);
    const auto off = [&](const std::vector<bool>& candidate) {
      return std::abs((total(program, candidate, failed) - allocated).count);
    };
    if (off(later) < off(alive)) alive = std::move(later);
  }
  for (const std::uint32_t tensor : failed) alive[tensor] = false;

  using Key = std::tuple<MemoryClass, std::string, std::string>;
  std::map<Key, LedgerLine> lines;
  for (std::uint32_t i = 0; i < alive.size(); ++i) {
    if (!alive[i]) continue;
    const program::TensorInfo& tensor = program.tensors[program::TensorId{i}];
    const std::string owner =
        tensor.scope.valid() ? owner_of(program.scopes[tensor.scope]) : std::string("(none)");
    const std::string what = what_is(program, tensor);
    LedgerLine& line = lines[{tensor.memory_class, owner, what}];
    line.memory_class = tensor.memory_class;
    line.owner = owner;
    line.what = what;
    line.bytes += tensor.bytes;
    line.tensors += 1;
  }
  std::vector<LedgerLine> sorted;
  for (auto& [key, line] : lines) sorted.push_back(std::move(line));
  largest_first(sorted);
  return sorted;
}

std::optional<Ledger> worst_ledger(const program::Workload& workload, const Timeline& timeline) {
  std::optional<Moment> moment = worst_moment(workload, timeline);
  if (!moment) return std::nullopt;
  const RankRecord& record = *moment->record;
  Ledger ledger = std::move(moment->ledger);
  ledger.rank = record.ranks.front();
  ledger.total = record.total;
  ledger.lines = alive_before(workload.programs[record.program], moment->end, record.failed_allocs,
                              ledger.allocated);
  ledger.rounding = ledger.allocated;
  for (const LedgerLine& line : ledger.lines) ledger.rounding -= line.bytes;
  return ledger;
}

std::optional<HostLedger> host_ledger(const program::Workload& workload, const Timeline& timeline,
                                      std::int64_t processes_per_node) {
  const auto* oom = std::get_if<HostOutOfMemory>(&timeline.verdict);
  if (oom == nullptr) return std::nullopt;
  std::map<std::pair<HostMemoryKind, std::string>, HostLedgerLine> lines;
  for (const RankRecord& record : timeline.ranks) {
    const program::Program& program = workload.programs[record.program];
    const auto here = std::count_if(record.ranks.begin(), record.ranks.end(), [&](RankId rank) {
      return rank.value / processes_per_node == oom->host.value;
    });
    if (here == 0) continue;
    std::vector<bool> alive(program.host_buffers.size(), false);
    const std::size_t end = std::min<std::size_t>(record.ops_done, program.ops.size());
    for (std::size_t i = 0; i < end; ++i) {
      const program::Body& body = program.ops[i].body;
      if (const auto* a = std::get_if<program::HostAlloc>(&body)) alive[a->buffer.value] = true;
      if (const auto* f = std::get_if<program::HostFree>(&body)) alive[f->buffer.value] = false;
    }
    std::map<std::pair<HostMemoryKind, std::string>, bool> counted;
    for (std::uint32_t i = 0; i < alive.size(); ++i) {
      if (!alive[i]) continue;
      const program::HostBuffer& buffer = program.host_buffers[program::HostBufferId{i}];
      const std::pair key{buffer.kind,
                          buffer.label.valid() ? program.labels[buffer.label] : std::string()};
      HostLedgerLine& line = lines[key];
      line.kind = key.first;
      line.what = key.second;
      line.bytes += buffer.bytes * here;
      if (!std::exchange(counted[key], true)) line.processes += here;
    }
  }
  HostLedger ledger{oom->host, {}};
  for (auto& [key, line] : lines) ledger.lines.push_back(std::move(line));
  largest_first(ledger.lines);
  return ledger;
}

}  // namespace sim::report
