// The report for people, 100 columns: the verdict in one sentence first, then what supports it.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/base/units_text.h"
#include "sim/report/verdict_text.h"
#include "sim/report/writers/writer.h"

namespace sim::report {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLedgerLines = 14;  // the rest is summed up in one line

std::string wrap(std::string_view text, std::size_t indent) {
  return sim::wrap(text, kColumns, indent);
}

// Paths keep their end, which names the thing; words keep their start.
std::string clip_path(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : "..." + text.substr(text.size() - (width - 3));
}
std::string clip(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string gib(Bytes b) { return fmt::format("{:.2f}", static_cast<double>(b.count) / (1 << 30)); }

std::string bytes(Bytes b) { return group_digits(b.count); }

std::string paint(const std::string& text, const Report& report, bool colour) {
  if (!colour) return text;
  const bool fits = std::holds_alternative<Fits>(report.verdict);
  return fmt::format("\x1b[1;{}m{}\x1b[0m", fits ? 32 : 31, text);
}

std::string headline(const Report& report, bool colour) {
  std::string out = wrap(fmt::format("{}: {}", report.scenario, report.job), 0) + "\n";
  std::string sentence = wrap(verdict_sentence(report), 0);
  sentence.pop_back();
  out += paint(sentence, report, colour) + "\n";
  const std::string_view message = message_of(report.verdict);
  // Literal and unbroken, so that a search for the text finds it.
  if (!message.empty()) out += fmt::format("\n  {}\n", message);
  return out;
}

std::string ledger_by_class(const Ledger& ledger) {
  std::array<Bytes, kMemoryClasses> sums{};
  for (const LedgerLine& line : ledger.lines) {
    sums[static_cast<std::size_t>(line.memory_class)] += line.bytes;
  }
  std::vector<int> order;
  for (int c = 0; c < kMemoryClasses; ++c) {
    if (sums[static_cast<std::size_t>(c)].count > 0) order.push_back(c);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return sums[static_cast<std::size_t>(a)] > sums[static_cast<std::size_t>(b)];
  });
  TextTable table({"", "GiB", "bytes"}, {false, true, true});
  const auto add = [&](std::string name, Bytes b) {
    table.add({std::move(name), gib(b), bytes(b)});
  };
  for (const int c : order) {
    add(std::string(to_text(static_cast<MemoryClass>(c))), sums[static_cast<std::size_t>(c)]);
  }
  if (ledger.rounding.count != 0) add("allocator rounding", ledger.rounding);
  add("= allocated", ledger.allocated);
  add("cached, not allocated", ledger.reserved - ledger.allocated);
  add("= reserved", ledger.reserved);
  add("outside the allocator", ledger.external);
  add("free", ledger.free);
  add("card", ledger.total);
  return table.text(2);
}

std::string ledger_by_owner(const Ledger& ledger) {
  TextTable table({"class", "owner", "what", "count", "GiB", "bytes"},
                  {false, false, false, true, true, true});
  Bytes rest;
  std::int64_t rest_tensors = 0;
  for (std::size_t i = 0; i < ledger.lines.size(); ++i) {
    const LedgerLine& line = ledger.lines[i];
    if (i < kLedgerLines) {
      table.add({std::string(to_text(line.memory_class)), clip_path(line.owner, 28),
                 clip(line.what, 20), group_digits(line.tensors), gib(line.bytes),
                 bytes(line.bytes)});
    } else {
      rest += line.bytes;
      rest_tensors += line.tensors;
    }
  }
  if (rest_tensors > 0) {
    table.add({"others", fmt::format("{} smaller", ledger.lines.size() - kLedgerLines), "",
               group_digits(rest_tensors), gib(rest), bytes(rest)});
  }
  return table.text(2);
}

std::string ledger_text(const Report& report) {
  if (!report.ledger) return "";
  const Ledger& ledger = *report.ledger;
  std::string out = wrap(
      fmt::format("Memory of rank {} {}, in {}:", ledger.rank.value, ledger.moment, ledger.phase),
      0);
  out += ledger_by_class(ledger);
  if (ledger.lines.empty()) return out;
  return out + '\n' + ledger_by_owner(ledger);
}

std::string phases_text(const Report& report) {
  std::string out;
  for (const RankSummary& rank : report.ranks) {
    if (rank.phases.empty()) continue;
    out += wrap(fmt::format("Peaks by phase, rank{} {} (GiB):", rank.ranks.size() == 1 ? "" : "s",
                            ranges(rank.ranks)),
                0);
    TextTable table({"phase", "seconds", "allocated", "reserved", "device used", "host",
                     "host pinned", "retries", "warnings"},
                    std::vector<bool>{false, true, true, true, true, true, true, true, true});
    for (const PhaseSummary& phase : rank.phases) {
      table.add({phase.name, fmt::format("{:.3f}", to_seconds(phase.end - phase.begin)),
                 gib(phase.peak_allocated), gib(phase.peak_reserved), gib(phase.peak_device_used),
                 gib(phase.host_anonymous), gib(phase.host_pinned),
                 fmt::format("{}", phase.alloc_retries), fmt::format("{}", phase.warnings)});
    }
    out += table.text(2);
  }
  return out;
}

// The first and the last warning of the first rank that has any; the others are alike.
std::string warnings_text(const Report& report) {
  if (report.warnings.empty()) return "";
  std::map<std::uint32_t, std::int64_t> counts;
  for (const WarningRecord& warning : report.warnings) counts[warning.rank.value] += warning.count;
  std::vector<std::string> by_rank;
  for (const auto& [rank, count] : counts) {
    by_rank.push_back(fmt::format("{} on rank {}", group_digits(count), rank));
  }
  const WarningRecord& first = report.warnings.front();
  const auto last = std::find_if(report.warnings.rbegin(), report.warnings.rend(),
                                 [&](const WarningRecord& w) { return w.rank == first.rank; });
  const auto quote = [](std::string_view which, const WarningRecord& warning) {
    return fmt::format("  {}, rank {} in {}: {}\n", which, warning.rank.value, warning.phase,
                       warning.text);
  };
  std::string out = fmt::format("Warnings: {}\n", join(by_rank));
  if (&*last == &first) return out + quote("the only text", first);
  return out + quote("first", first) + quote("last", *last);
}

std::string hosts_text(const Report& report) {
  if (report.hosts.empty()) return "";
  TextTable table({"host", "anonymous", "pinned", "file-backed", "capacity", "fullest phase"},
                  {false, true, true, true, true, false});
  for (const HostRecord& host : report.hosts) {
    const HostPhaseRecord* fullest = nullptr;
    for (const HostPhaseRecord& phase : host.phases) {
      if (fullest == nullptr || phase.peak_anonymous + phase.peak_pinned >
                                    fullest->peak_anonymous + fullest->peak_pinned) {
        fullest = &phase;
      }
    }
    table.add({fmt::format("{}", host.host.value), gib(host.peak_anonymous), gib(host.peak_pinned),
               gib(host.peak_file_backed), gib(host.capacity),
               fullest == nullptr ? "" : fullest->name});
  }
  return "Host memory, peaks (GiB):\n" + table.text(2);
}

std::string host_ledger_text(const Report& report) {
  if (!report.host_ledger || report.host_ledger->lines.empty()) return "";
  TextTable table({"kind", "what", "processes", "GiB", "bytes"}, {false, false, true, true, true});
  for (const HostLedgerLine& line : report.host_ledger->lines) {
    table.add({std::string(to_text(line.kind)), clip(line.what, 40),
               fmt::format("{}", line.processes), gib(line.bytes), bytes(line.bytes)});
  }
  return fmt::format("Memory of host {} when it ran out:\n{}", report.host_ledger->host.value,
                     table.text(2));
}

// Hosts with the same cards in use share a line.
std::string placement_text(const Report& report) {
  struct HostCards {
    std::vector<std::uint32_t> used, idle, ranks;
  };
  std::map<std::uint32_t, HostCards> hosts;
  for (const PlacementLine& line : report.placement) {
    hosts[line.host].used.push_back(line.physical_gpu);
    hosts[line.host].ranks.push_back(line.rank.value);
  }
  for (const IdleGpu& idle : report.idle_gpus) hosts[idle.host].idle.push_back(idle.physical_gpu);

  std::string out = hosts.empty() ? "" : "Placement:\n";
  for (auto it = hosts.begin(); it != hosts.end();) {
    const HostCards& cards = it->second;
    std::vector<std::uint32_t> alike, ranks;
    for (; it != hosts.end() && it->second.used == cards.used && it->second.idle == cards.idle;
         ++it) {
      alike.push_back(it->first);
      ranks.insert(ranks.end(), it->second.ranks.begin(), it->second.ranks.end());
    }
    out +=
        wrap(fmt::format("host{} {}: ranks {} on physical GPUs {}{}", alike.size() == 1 ? "" : "s",
                         ranges(alike), ranges(ranks), fmt::join(cards.used, " "),
                         cards.idle.empty()
                             ? std::string()
                             : fmt::format("; visible but idle: {}", fmt::join(cards.idle, " "))),
             2);
  }
  return out;
}

std::string processes_text(const Report& report) {
  std::map<std::pair<int, std::string>, std::vector<RankId>> by_exit;
  for (const ProcessExit& exit : report.processes) {
    if (exit.exit_code != 0) by_exit[{exit.exit_code, exit.signal}].push_back(exit.rank);
  }
  std::string out = by_exit.empty() ? "" : "Processes:\n";
  for (const auto& [exit, ranks] : by_exit) {
    out +=
        wrap(fmt::format("rank{} {}: exit code {}{}", ranks.size() == 1 ? "" : "s", ranges(ranks),
                         exit.first, exit.second.empty() ? "" : " (" + exit.second + ")"),
             2);
  }
  return out;
}

std::string step_text(const Report& report) {
  if (!report.step) return "";
  const StepSummary& step = *report.step;
  std::string line = fmt::format("Step: {}", to_text(step.time));
  if (step.low && step.high) {
    line += fmt::format(" ({} to {})", to_text(*step.low), to_text(*step.high));
  }
  const auto add = [&](std::string_view name, const std::optional<Duration>& time) {
    if (time) line += fmt::format(", {} {}", name, to_text(*time));
  };
  add("forward", step.forward);
  add("backward", step.backward);
  add("optimizer", step.optimizer);
  add("exposed communication", step.exposed_communication);
  add("bubble", step.bubble);
  line += fmt::format("; {:.0f} tokens/s, {:.1f} model TFLOP/s per GPU", step.tokens_per_second,
                      step.model_tflops_per_gpu);
  if (step.mfu) line += fmt::format(", MFU {:.1f} %", 100 * *step.mfu);
  return wrap(line, 0);
}

std::string assumptions_text(const Report& report) {
  if (report.assumptions.empty()) return "";
  std::size_t width = 0;
  for (const Assumption& a : report.assumptions) width = std::max(width, a.key.size());
  width = std::min<std::size_t>(width, 36);
  std::string out = "Assumed, since the scenario does not say:\n";
  for (const Assumption& a : report.assumptions) {
    const std::string text = fmt::format("{:<{}} = {}  ({})", a.key, width, a.value, a.why);
    if (text.size() + 2 <= kColumns) {
      out += "  " + text + "\n";
    } else {
      out += fmt::format("  {:<{}} = {}\n", a.key, width, a.value);
      out += wrap(fmt::format("({})", a.why), width + 5);
    }
  }
  return out;
}

std::string write_text(const Report& report, const WriteOptions& options) {
  std::string out = headline(report, options.colour);
  for (const auto section : {host_ledger_text, ledger_text, phases_text, warnings_text, hosts_text,
                             processes_text, placement_text, step_text, assumptions_text}) {
    const std::string text = section(report);
    if (!text.empty()) out += '\n' + text;
  }
  return out;
}

}  // namespace

const Writer kText{"text", "the report for people, verdict first", write_text};

}  // namespace sim::report
