#include "sim/report/verdict_text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/base/units_text.h"

namespace sim::report {

namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

// "rank 2 (GPU 5)", with the host where there are several.
std::string rank_with_place(const Report& report, RankId rank) {
  if (rank.value >= report.placement.size()) return fmt::format("rank {}", rank.value);
  const PlacementLine& line = report.placement[rank.value];
  const bool several_hosts = report.placement.back().host > 0;
  return several_hosts ? fmt::format("rank {} (host {}, physical GPU {})", rank.value, line.host,
                                     line.physical_gpu)
                       : fmt::format("rank {} (physical GPU {})", rank.value, line.physical_gpu);
}

const RankSummary* summary_of(const Report& report, RankId rank) {
  for (const RankSummary& summary : report.ranks) {
    if (std::find(summary.ranks.begin(), summary.ranks.end(), rank) != summary.ranks.end()) {
      return &summary;
    }
  }
  return nullptr;
}

// "; every rank meets the same", for the class of the rank that failed.
std::string others_alike(const Report& report, RankId rank) {
  const RankSummary* summary = summary_of(report, rank);
  if (summary == nullptr || summary->ranks.size() < 2) return "";
  return summary->ranks.size() == report.placement.size()
             ? "; every rank meets the same"
             : fmt::format("; {} meet the same", ranks_text(summary->ranks));
}

std::string at_scope(const std::string& scope) {
  return scope.empty() ? "" : fmt::format(" at `{}`", scope);
}

// The highest peak of the run, and all ranks that reach it.
struct HighestPeak {
  const RankSummary* rank = nullptr;
  const PhaseSummary* phase = nullptr;
  std::vector<RankId> ranks;
  std::int64_t retries = 0;  // of one rank
};

HighestPeak highest_peak(const Report& report) {
  HighestPeak highest;
  for (const RankSummary& rank : report.ranks) {
    std::int64_t retries = 0;
    for (const PhaseSummary& phase : rank.phases) {
      retries += phase.alloc_retries;
      if (highest.phase != nullptr && phase.peak_allocated <= highest.phase->peak_allocated) {
        continue;
      }
      highest.rank = &rank;
      highest.phase = &phase;
    }
    highest.retries = std::max(highest.retries, retries);
  }
  for (const RankSummary& rank : report.ranks) {
    const bool reaches = std::any_of(rank.phases.begin(), rank.phases.end(), [&](const auto& p) {
      return p.peak_allocated == highest.phase->peak_allocated;
    });
    if (reaches) highest.ranks.insert(highest.ranks.end(), rank.ranks.begin(), rank.ranks.end());
  }
  std::sort(highest.ranks.begin(), highest.ranks.end());
  return highest;
}

std::string fits_sentence(const Report& report) {
  const HighestPeak peak = highest_peak(report);
  if (peak.phase == nullptr) return "Fits.";
  const Bytes cached = peak.phase->peak_reserved - peak.phase->peak_allocated;
  std::string text = fmt::format(
      "Fits: at most {} allocated, in {} on {}. Of the card's {}, {} then are free; {} more are "
      "cached by the allocator, and {} lie outside it",
      to_text(peak.phase->peak_allocated), peak.phase->name, ranks_text(peak.ranks),
      to_text(peak.rank->total), to_text(peak.rank->total - peak.phase->peak_device_used),
      to_text(cached), to_text(peak.rank->external));
  text += peak.retries == 0 ? "."
                            : fmt::format("; the cache had to be emptied {} time{}.", peak.retries,
                                          peak.retries == 1 ? "" : "s");
  const HostRecord* host = nullptr;
  for (const HostRecord& h : report.hosts) {
    if (host == nullptr ||
        h.peak_anonymous + h.peak_pinned > host->peak_anonymous + host->peak_pinned) {
      host = &h;
    }
  }
  if (host == nullptr) return text;
  const Bytes held = host->peak_anonymous + host->peak_pinned;
  return text +
         fmt::format(" Host memory peaks at {} of {}.", to_text(held), to_text(host->capacity));
}

std::string oom_sentence(const Report& report, const CudaOutOfMemory& oom) {
  return fmt::format(
      "Out of GPU memory in {}: {} asks for {} for {}{}, with {} allocated, {} reserved and {} "
      "free of {}{}.",
      oom.phase, rank_with_place(report, oom.rank), to_text(oom.tried),
      oom.tensor.empty() ? "a tensor" : oom.tensor, at_scope(oom.scope), to_text(oom.allocated),
      to_text(oom.reserved), to_text(oom.free), to_text(oom.total), others_alike(report, oom.rank));
}

std::string host_oom_sentence(const Report& report, const HostOutOfMemory& oom) {
  std::size_t processes = 0;
  for (const PlacementLine& line : report.placement) processes += line.host == oom.host.value;
  std::vector<RankId> ended;
  for (const ProcessExit& exit : report.processes) {
    if (exit.signal == "SIGTERM") ended.push_back(exit.rank);
  }
  const std::string others =
      ended.empty() ? "" : fmt::format("; the launcher then ends {} (SIGTERM)", ranks_text(ended));
  return fmt::format(
      "Out of host memory in {}: the {} process{} of host {} hold {} of {} when rank {} asks for "
      "{} more{}; the kernel kills rank {} (SIGKILL){}.",
      oom.phase, processes, processes == 1 ? "" : "es", oom.host.value, to_text(held_before(oom)),
      to_text(oom.capacity), oom.rank.value, to_text(oom.requested), at_scope(oom.scope),
      oom.rank.value, others);
}

std::string hang_sentence(const Hang& hang) {
  const std::string doing =
      hang.missing_is_doing.empty()
          ? ", which never enter" + std::string(hang.missing.size() == 1 ? "s it" : " it")
          : fmt::format(" ({})", hang.missing_is_doing);
  return fmt::format("Hangs in {}: {} wait{} in {}{} for {}{}; the watchdog fires after {}.",
                     hang.phase, ranks_text(hang.waiting), hang.waiting.size() == 1 ? "s" : "",
                     to_text(hang.collective),
                     hang.scope.empty() ? "" : fmt::format(" of `{}`", hang.scope),
                     ranks_text(hang.missing), doing, to_text(hang.watchdog));
}

std::string crash_sentence(const Report& report, const Crashed& crash) {
  if (!report.caught_failures) {
    return fmt::format("Crashed in {}: {}{}.", crash.phase, rank_with_place(report, crash.rank),
                       at_scope(crash.scope));
  }
  const CaughtFailures& failures = *report.caught_failures;
  const std::int64_t layer = layer_of(failures.first_scope);
  const std::string first =
      layer >= 0 ? fmt::format("layer {}", layer) : fmt::format("`{}`", failures.first_scope);
  const std::string extent = failures.count == 1
                                 ? fmt::format("1 such allocation failed, in {}", first)
                                 : fmt::format("{} such allocations failed, from {} on",
                                               group_digits(failures.count), first);
  const std::string where = failures.ranks.size() == report.placement.size()
                                ? "on every rank"
                                : "on " + ranks_text(failures.ranks);
  return fmt::format(
      "Crashed in {}: {} copies `{}` to the host, but its {} had failed (CUDA out of memory) and "
      "points at freed memory; {}, {}.",
      crash.phase, rank_with_place(report, crash.rank), crash.scope, failures.what, extent, where);
}

}  // namespace

Bytes held_before(const HostOutOfMemory& oom) {
  const Bytes held = oom.used > oom.capacity ? oom.used - oom.requested : oom.used;
  return std::min(held, oom.capacity);
}

std::string_view kind_of(const Verdict& verdict) {
  return std::visit(
      Overloaded{[](const Fits&) { return "fits"; },
                 [](const CudaOutOfMemory&) { return "cuda_out_of_memory"; },
                 [](const HostOutOfMemory&) { return "host_out_of_memory"; },
                 [](const Hang&) { return "hang"; }, [](const Crashed&) { return "crashed"; }},
      verdict);
}

std::vector<std::string> verdict_kinds() {
  std::vector<std::string> kinds;
  for (const Verdict& verdict : {Verdict(Fits{}), Verdict(CudaOutOfMemory{}),
                                 Verdict(HostOutOfMemory{}), Verdict(Hang{}), Verdict(Crashed{})}) {
    kinds.emplace_back(kind_of(verdict));
  }
  return kinds;
}

std::string_view phase_of(const Verdict& verdict) {
  return std::visit(Overloaded{[](const Fits&) { return std::string_view(); },
                               [](const auto& failure) { return std::string_view(failure.phase); }},
                    verdict);
}

std::string_view message_of(const Verdict& verdict) {
  return std::visit(
      Overloaded{[](const Fits&) { return std::string_view(); },
                 [](const auto& failure) { return std::string_view(failure.message); }},
      verdict);
}

bool is_in(std::string_view phase, std::string_view name) {
  return phase.starts_with(name) && (phase.size() == name.size() || phase[name.size()] == '.');
}

std::string verdict_sentence(const Report& report) {
  return std::visit(
      Overloaded{[&](const Fits&) { return fits_sentence(report); },
                 [&](const CudaOutOfMemory& oom) { return oom_sentence(report, oom); },
                 [&](const HostOutOfMemory& oom) { return host_oom_sentence(report, oom); },
                 [&](const Hang& hang) { return hang_sentence(hang); },
                 [&](const Crashed& crash) { return crash_sentence(report, crash); }},
      report.verdict);
}

std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string ranges(const std::vector<RankId>& ranks) {
  std::vector<std::uint32_t> numbers;
  for (const RankId rank : ranks) numbers.push_back(rank.value);
  return ranges(numbers);
}

std::string ranks_text(const std::vector<RankId>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks);
}

std::int64_t layer_of(std::string_view scope) {
  std::int64_t layer = -1;
  while (!scope.empty()) {
    const std::size_t dot = std::min(scope.find('.'), scope.size());
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(scope.data(), scope.data() + dot, number);
    if (error == std::errc() && end == scope.data() + dot) layer = number;
    scope.remove_prefix(std::min(dot + 1, scope.size()));
  }
  return layer;
}

}  // namespace sim::report
