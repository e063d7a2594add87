#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/report/ledger.h"
#include "sim/report/report.h"
#include "sim/report/step_summary.h"

namespace sim::report {

namespace {

PhaseSummary& phase_named(std::vector<PhaseSummary>& phases, const std::string& name,
                          Instant begin) {
  for (PhaseSummary& phase : phases) {
    if (phase.name == name) return phase;
  }
  PhaseSummary fresh;
  fresh.name = name;
  fresh.begin = begin;
  phases.push_back(std::move(fresh));
  return phases.back();
}

void merge(PhaseSummary& into, const PhaseRecord& record) {
  into.begin = std::min(into.begin, record.begin);
  into.end = std::max(into.end, record.end);
  into.peak_allocated = std::max(into.peak_allocated, record.peak_allocated);
  into.peak_reserved = std::max(into.peak_reserved, record.peak_reserved);
  into.peak_device_used = std::max(into.peak_device_used, record.peak_device_used);
  into.end_allocated = record.end_allocated;
  into.end_reserved = record.end_reserved;
  into.end_by_class = record.end_by_class;
  if (!into.first) {
    into.first = {record.peak_allocated, record.peak_reserved, record.end_allocated};
  } else {
    into.later = {std::max(into.later.peak_allocated, record.peak_allocated),
                  std::max(into.later.peak_reserved, record.peak_reserved), record.end_allocated};
  }
  for (std::size_t c = 0; c < into.peak_by_class.size(); ++c) {
    into.peak_by_class[c] = std::max(into.peak_by_class[c], record.peak_by_class[c]);
  }
  into.host_anonymous = std::max(into.host_anonymous, record.host_anonymous);
  into.host_pinned = std::max(into.host_pinned, record.host_pinned);
  into.warnings += record.warnings;
  into.alloc_retries += record.alloc_retries;
}

// `step.forward` also counts as `step`. `step0.forward` and `step.1` stand for themselves: step0 is
// no phase of the contract, and a numbered step is another step than the steady one.
std::string parent_phase(const std::string& name) {
  const std::string parent = name.substr(0, name.find('.'));
  const bool numbered =
      name.find_first_not_of("0123456789", parent.size() + 1) == std::string::npos;
  return parent == "step0" || numbered ? name : parent;
}

std::vector<PhaseSummary> summarise_phases(const RankRecord& record) {
  std::vector<PhaseSummary> phases;
  for (const PhaseRecord& phase : record.phases) {
    const std::string parent = parent_phase(phase.name);
    if (parent != phase.name) merge(phase_named(phases, parent, phase.begin), phase);
    merge(phase_named(phases, phase.name, phase.begin), phase);
  }
  return phases;
}

// The warnings of all rank classes in time order, as far as it is recorded: by the begin of their
// phase. Ranks that warn in one phase walk the same modules, so their n-th warnings belong
// together.
std::vector<WarningRecord> warnings_in_order(const Timeline& timeline) {
  struct Place {
    Instant phase;
    std::size_t number = 0;  // within the phase
    const WarningRecord* warning = nullptr;
  };
  std::vector<Place> places;
  for (const RankRecord& record : timeline.ranks) {
    std::map<std::string, std::size_t> numbers;
    for (const WarningRecord& warning : record.warnings) {
      const auto phase = std::find_if(record.phases.begin(), record.phases.end(),
                                      [&](const auto& p) { return p.name == warning.phase; });
      const Instant begin = phase == record.phases.end() ? record.finished : phase->begin;
      places.push_back({begin, numbers[warning.phase]++, &warning});
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.phase, a.number) < std::pair(b.phase, b.number);
  });
  std::vector<WarningRecord> warnings;
  for (const Place& place : places) warnings.push_back(*place.warning);
  return warnings;
}

// A phase that comes back (micro-batches) is one line: its highest peaks, its first begin.
HostRecord summarise_host(const HostRecord& record) {
  HostRecord host = record;
  host.phases.clear();
  for (const HostPhaseRecord& phase : record.phases) {
    const auto same = std::find_if(host.phases.begin(), host.phases.end(),
                                   [&](const HostPhaseRecord& p) { return p.name == phase.name; });
    if (same == host.phases.end()) {
      host.phases.push_back(phase);
      continue;
    }
    same->peak_anonymous = std::max(same->peak_anonymous, phase.peak_anonymous);
    same->peak_pinned = std::max(same->peak_pinned, phase.peak_pinned);
    same->peak_file_backed = std::max(same->peak_file_backed, phase.peak_file_backed);
  }
  return host;
}

std::vector<PlacementLine> place(const ClusterSpec& cluster) {
  std::vector<PlacementLine> lines;
  const auto per_node = static_cast<std::uint32_t>(cluster.processes_per_node.value);
  const auto world = static_cast<std::uint32_t>(cluster.world_size());
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const std::uint32_t local = rank % per_node;
    const std::uint32_t gpu = local < cluster.visible_devices.size()
                                  ? static_cast<std::uint32_t>(cluster.visible_devices[local])
                                  : local;
    lines.push_back({RankId{rank}, rank / per_node, local, gpu});
  }
  return lines;
}

// Cards that the job may use and does not. A card of the node that is not visible is not idle: it
// was left to others.
std::vector<IdleGpu> find_idle(const ClusterSpec& cluster) {
  std::vector<std::uint32_t> visible;
  for (const int gpu : cluster.visible_devices) visible.push_back(static_cast<std::uint32_t>(gpu));
  if (visible.empty()) {
    for (int gpu = 0; gpu < cluster.node.gpus; ++gpu) {
      visible.push_back(static_cast<std::uint32_t>(gpu));
    }
  }
  std::vector<IdleGpu> idle;
  for (std::uint32_t host = 0; host < cluster.nodes.value; ++host) {
    for (auto i = static_cast<std::size_t>(cluster.processes_per_node.value); i < visible.size();
         ++i) {
      idle.push_back({host, visible[i]});
    }
  }
  return idle;
}

std::optional<CaughtFailures> find_caught_failures(const program::Workload& workload,
                                                   const Timeline& timeline) {
  std::optional<CaughtFailures> found;
  for (const RankRecord& record : timeline.ranks) {
    if (record.failed_allocs.empty()) continue;
    const program::Program& program = workload.programs[record.program];
    const auto scope_of = [&](std::uint32_t tensor) {
      const ScopeId scope = program.tensors[program::TensorId{tensor}].scope;
      return scope.valid() ? program.scopes[scope] : std::string();
    };
    if (!found) {
      const program::LabelId label =
          program.tensors[program::TensorId{record.failed_allocs.front()}].label;
      found = CaughtFailures{{},
                             label.valid() ? program.labels[label] : "allocation",
                             scope_of(record.failed_allocs.front()),
                             scope_of(record.failed_allocs.back()),
                             static_cast<std::int64_t>(record.failed_allocs.size())};
    }
    found->ranks.insert(found->ranks.end(), record.ranks.begin(), record.ranks.end());
  }
  if (found) std::sort(found->ranks.begin(), found->ranks.end());
  return found;
}

std::string describe_job(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  std::string strategies;
  for (const StrategySpec& strategy : scenario.job.strategies) {
    strategies += (strategies.empty() ? " with " : " + ") + strategy.name.name;
  }
  return fmt::format("{} under {}{}, {} process{} on {} node{} {}", scenario.model.name,
                     scenario.job.trainer.name, strategies, cluster.world_size(),
                     cluster.world_size() == 1 ? "" : "es", cluster.nodes.value,
                     cluster.nodes.value == 1 ? "" : "s", cluster.node.name);
}

}  // namespace

Report analyse(const Subject& subject, const Timeline& timeline) {
  const Scenario& scenario = subject.scenario;
  Report report;
  report.scenario = scenario.name;
  report.job = describe_job(scenario);
  report.software = subject.software;
  for (const auto& [library, release] : scenario.software.releases) {
    report.software.try_emplace(library, release.value.text);
  }
  report.verdict = timeline.verdict;
  report.placement = place(scenario.cluster);
  report.idle_gpus = find_idle(scenario.cluster);
  report.processes = timeline.processes;
  for (const RankRecord& record : timeline.ranks) {
    report.ranks.push_back({record.ranks, summarise_phases(record), record.total, record.external});
  }
  report.warnings = warnings_in_order(timeline);
  for (const HostRecord& host : timeline.hosts) report.hosts.push_back(summarise_host(host));
  report.steps = scenario.job.steps.value;
  if (!report.ranks.empty()) {
    report.step = summarise_step(subject, timeline, report.ranks.front().phases);
  }
  report.caught_failures = find_caught_failures(subject.workload, timeline);
  report.ledger = worst_ledger(subject.workload, timeline);
  report.host_ledger =
      host_ledger(subject.workload, timeline, scenario.cluster.processes_per_node.value);
  report.assumptions = subject.assumptions.all();
  return report;
}

}  // namespace sim::report
