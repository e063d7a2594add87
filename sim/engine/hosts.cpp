#include "sim/engine/hosts.h"

#include <algorithm>
#include <map>

namespace sim::engine {

namespace {

memory::HostMemoryKind kind_of(HostMemoryKind kind) {
  switch (kind) {
    case HostMemoryKind::anonymous:
      return memory::HostMemoryKind::anonymous;
    case HostMemoryKind::pinned:
      return memory::HostMemoryKind::pinned;
    case HostMemoryKind::file_backed:
      return memory::HostMemoryKind::file_backed;
  }
  return memory::HostMemoryKind::anonymous;
}

// The processes of a host map the same files, whose pages it holds once: the first one's.
bool is_counted_elsewhere(HostMemoryKind kind, int local) {
  return kind == HostMemoryKind::file_backed && local != 0;
}

template <class Record>
void raise_peaks(Record& record, const memory::HostMemory& memory) {
  const memory::HostUse use = memory.use();
  record.peak_anonymous = std::max(record.peak_anonymous, use.anonymous);
  record.peak_pinned = std::max(record.peak_pinned, use.pinned);
  record.peak_file_backed = std::max(record.peak_file_backed, memory.resident_file_backed());
}

}  // namespace

Hosts::Hosts(const Machine& machine, const RankClasses& classes)
    : processes_of_(classes.everyone() + 1), local_rank_(classes.class_of.size()) {
  std::map<std::uint32_t, std::vector<RankId>> by_host;
  for (RankId rank{0}; rank.value < classes.class_of.size(); ++rank.value) {
    std::vector<RankId>& processes = by_host[machine.place_of[rank].host];
    local_rank_[rank] = static_cast<int>(processes.size());
    processes.push_back(rank);
  }
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (const auto& [host, processes] : by_host) {
    std::vector<std::uint32_t> composition;
    for (const RankId rank : processes) composition.push_back(classes.class_of[rank]);
    const auto next = static_cast<std::uint32_t>(models_.size());
    const auto [entry, is_new] = known.try_emplace(composition, next);
    if (is_new) {
      models_.push_back({{}, processes, memory::HostMemory(machine.host.capacity), {}});
      models_.back().record.capacity = machine.host.capacity;
      for (std::size_t i = 0; i < composition.size(); ++i) {
        const Process process{next, static_cast<int>(i)};
        processes_of_[composition[i]].push_back(process);
        processes_of_[classes.everyone()].push_back(process);
      }
    }
    models_[entry->second].hosts.push_back(HostId{host});
  }
}

std::optional<Hosts::Kill> Hosts::allocate(std::uint32_t rank_class, HostMemoryKind kind,
                                           Bytes size) {
  for (const Process& process : processes_of_[rank_class]) {
    if (is_counted_elsewhere(kind, process.local)) continue;
    Model& model = models_[process.model];
    model.memory.allocate(process.local, kind_of(kind), size);
    if (const std::optional<int> victim = model.memory.victim()) {
      return Kill{model.hosts.front(), model.processes[static_cast<std::size_t>(*victim)], *victim,
                  model.memory.use().unreclaimable(), model.memory.limit()};
    }
    note(model);
  }
  return std::nullopt;
}

void Hosts::free(std::uint32_t rank_class, HostMemoryKind kind, Bytes size) {
  for (const Process& process : processes_of_[rank_class]) {
    if (is_counted_elsewhere(kind, process.local)) continue;
    models_[process.model].memory.free(process.local, kind_of(kind), size);
    // What others give back can let file pages stay.
    note(models_[process.model]);
  }
}

void Hosts::begin_phase(std::uint32_t rank_class, const std::string& name) {
  for (const Process& process : processes_of_[rank_class]) {
    if (process.local != 0) continue;
    Model& model = models_[process.model];
    HostPhaseRecord phase{name, {}, {}, {}, model.memory.use().anonymous};
    raise_peaks(phase, model.memory);
    model.record.phases.push_back(phase);
  }
}

void Hosts::note(Model& model) {
  raise_peaks(model.record, model.memory);
  if (!model.record.phases.empty()) raise_peaks(model.record.phases.back(), model.memory);
}

std::vector<HostRecord> Hosts::close() const {
  std::vector<HostRecord> records;
  for (const Model& model : models_) {
    for (const HostId host : model.hosts) {
      records.push_back(model.record);
      records.back().host = host;
    }
  }
  std::sort(records.begin(), records.end(),
            [](const HostRecord& a, const HostRecord& b) { return a.host < b.host; });
  return records;
}

}  // namespace sim::engine
