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
  if (!message.empty()) out += fmt::format("\n{}", wrap(message, 2));
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
  add("cached for reuse", ledger.reserved - ledger.allocated);
  add("= reserved", ledger.reserved);
  add("outside the allocator", ledger.external);
  add("free", ledger.free);
  add("card", ledger.total);
  return table.text(2);
}

std::string ledger_by_owner(const Ledger& ledger) {
  constexpr std::size_t kOwner = 28;
  std::size_t shown = std::min(ledger.lines.size(), kLedgerLines);
  // What a line is takes the columns that the others leave; two blanks stand between them.
  std::size_t memory_class = 0, owner = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    memory_class = std::max(memory_class, to_text(ledger.lines[i].memory_class).size());
    owner = std::max(owner, std::min(kOwner, ledger.lines[i].owner.size()));
  }
  constexpr std::size_t kFigures = 6 + 11;  // "12,345", "1023.99 MiB"
  const std::size_t what = kColumns - 2 - 4 * 2 - kFigures -
                           std::max<std::size_t>(memory_class, 6) -
                           std::max<std::size_t>(owner, 12);
  TextTable table({"class", "owner", "what", "count", "size"}, {false, false, false, true, true});
  for (std::size_t i = 0; i < shown; ++i) {
    const LedgerLine& line = ledger.lines[i];
    table.add({std::string(to_text(line.memory_class)), clip_path(line.owner, kOwner),
               clip(line.what, what), group_digits(line.tensors), to_text(line.bytes)});
  }
  Bytes rest;
  std::int64_t tensors = 0;
  for (std::size_t i = shown; i < ledger.lines.size(); ++i) {
    rest += ledger.lines[i].bytes;
    tensors += ledger.lines[i].tensors;
  }
  if (tensors > 0) {
    table.add({"others", fmt::format("{} smaller", ledger.lines.size() - shown), "",
               group_digits(tensors), to_text(rest)});
  }
  return table.text(2);
}

// The words of the two tables that are no field words.
std::string ledger_glossary(const Ledger& ledger) {
  std::string text;
  if (ledger.rounding.count != 0) {
    text += "Allocator rounding: blocks are a little larger than their tensors. ";
  }
  if (ledger.reserved > ledger.allocated) {
    text += "Cached for reuse: the allocator keeps it, no other process can have it. ";
  }
  const bool root = std::any_of(ledger.lines.begin(), ledger.lines.end(),
                                [](const LedgerLine& line) { return line.owner == "(root)"; });
  if (root) text += "(root): the model as a whole, what no inner module owns. ";
  if (text.empty()) return "";
  text.pop_back();
  return wrap(text, 2);
}

std::string ledger_text(const Report& report) {
  // A host can run out before anything is on the card.
  if (!report.ledger || report.ledger->allocated.count == 0) return "";
  const Ledger& ledger = *report.ledger;
  std::string out = wrap(
      fmt::format("Memory of rank {} {}, in {}:", ledger.rank.value, ledger.moment, ledger.phase),
      0);
  out += ledger_by_class(ledger);
  if (!ledger.lines.empty()) out += '\n' + ledger_by_owner(ledger);
  const std::string glossary = ledger_glossary(ledger);
  return glossary.empty() ? out : out + '\n' + glossary;
}

std::vector<std::string> phase_row(const PhaseSummary& phase) {
  return {phase.name,
          fmt::format("{:.3f}", to_seconds(phase.end - phase.begin)),
          gib(phase.peak_allocated),
          gib(phase.peak_reserved),
          gib(phase.peak_device_used),
          gib(phase.host_anonymous),
          gib(phase.host_pinned),
          fmt::format("{}", phase.alloc_retries),
          fmt::format("{}", phase.warnings)};
}

// Which of the rows `step.1`, `step`, `step.3` is which. The row before the last one of them is one
// step; the last may cover all that are left.
std::string steps_note(const Report& report) {
  const std::vector<PhaseSummary>& phases = report.ranks.front().phases;
  const PhaseSummary* last = nullptr;
  std::int64_t first_of_last = 0;
  bool steady = false;
  for (const PhaseSummary& phase : phases) {
    steady = steady || phase.name == "step";
    if (!phase.name.starts_with("step.") || phase.name.size() > 9) continue;
    const std::string number = phase.name.substr(5);
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    last = &phase;
    first_of_last = std::stoll(number);
  }
  if (!steady || last == nullptr) return "";
  std::string text = "`step` is the steady step that is reported; step.N counts from step0.";
  const std::int64_t covered = report.steps - first_of_last;
  if (covered > 1 && phase_of(report.verdict) != last->name) {
    text += fmt::format(" {} covers {} steps of {} each.", last->name, covered,
                        to_text((last->end - last->begin) / covered));
  }
  return wrap(text, 2);
}

// A later rank class shows only the rows in which it differs from the first.
std::string phases_text(const Report& report) {
  std::string out;
  const std::vector<PhaseSummary>* reference = nullptr;
  for (const RankSummary& rank : report.ranks) {
    if (rank.phases.empty()) continue;
    TextTable table({"phase", "seconds", "allocated", "reserved", "device used", "host",
                     "host pinned", "retries", "warnings"},
                    std::vector<bool>{false, true, true, true, true, true, true, true, true});
    std::size_t rows = 0;
    for (const PhaseSummary& phase : rank.phases) {
      const auto same = [&](const PhaseSummary& other) {
        return phase_row(other) == phase_row(phase);
      };
      if (reference != nullptr && std::any_of(reference->begin(), reference->end(), same)) continue;
      table.add(phase_row(phase));
      ++rows;
    }
    if (reference == nullptr) {
      out += wrap(fmt::format("Peaks by phase, {} (GiB):", ranks_text(rank.ranks)), 0);
      out += table.text(2);
      if (const std::string note = steps_note(report); !note.empty()) out += '\n' + note;
      reference = &rank.phases;
      continue;
    }
    const std::string first = ranks_text(report.ranks.front().ranks);
    out += '\n' + wrap(fmt::format("Peaks by phase, {}: as {}{}", ranks_text(rank.ranks), first,
                                   rows == 0 ? "." : ", but for (GiB):"),
                       0);
    if (rows > 0) out += table.text(2);
  }
  return out;
}

// The ranks that `rank` stands for.
const std::vector<RankId>* class_of(const Report& report, RankId rank) {
  for (const RankSummary& summary : report.ranks) {
    if (!summary.ranks.empty() && summary.ranks.front() == rank) return &summary.ranks;
  }
  return nullptr;
}

// The first and the last warning of the first rank that has any; the others are alike.
std::string warnings_text(const Report& report) {
  if (report.warnings.empty()) return "";
  std::map<RankId, std::int64_t> counts;
  for (const WarningRecord& warning : report.warnings) counts[warning.rank] += warning.count;
  std::vector<std::string> by_rank;
  for (const auto& [rank, count] : counts) {
    const std::vector<RankId>* alike = class_of(report, rank);
    const std::vector<RankId> ranks = alike == nullptr ? std::vector<RankId>{rank} : *alike;
    by_rank.push_back(fmt::format("{} on {}{}", group_digits(count),
                                  ranks.size() > 1 ? "each of " : "", ranks_text(ranks)));
  }
  const WarningRecord& first = report.warnings.front();
  const auto last = std::find_if(report.warnings.rbegin(), report.warnings.rend(),
                                 [&](const WarningRecord& w) { return w.rank == first.rank; });
  const auto quote = [](std::string_view which, const WarningRecord& warning) {
    return wrap(fmt::format("{}, rank {} in {}: {}", which, warning.rank.value, warning.phase,
                            warning.text),
                2);
  };
  std::string out = fmt::format("Warnings: {}\n", join(by_rank));
  if (&*last == &first) return out + quote("the only text", first);
  return out + quote("first", first) + quote("last", *last);
}

std::string hosts_text(const Report& report) {
  if (report.hosts.empty()) return "";
  // Hosts with the same figures share a line, in the order of their first.
  std::vector<std::pair<std::vector<std::string>, std::vector<std::uint32_t>>> rows;
  std::map<std::vector<std::string>, std::size_t> row_of;
  for (const HostRecord& host : report.hosts) {
    const HostPhaseRecord* fullest = nullptr;
    for (const HostPhaseRecord& phase : host.phases) {
      if (fullest == nullptr || phase.peak_anonymous + phase.peak_pinned >
                                    fullest->peak_anonymous + fullest->peak_pinned) {
        fullest = &phase;
      }
    }
    const std::vector<std::string> figures = {gib(host.peak_anonymous), gib(host.peak_pinned),
                                              gib(host.peak_file_backed), gib(host.capacity),
                                              fullest == nullptr ? "" : fullest->name};
    const auto [at, fresh] = row_of.emplace(figures, rows.size());
    if (fresh) rows.push_back({figures, {}});
    rows[at->second].second.push_back(host.host.value);
  }
  TextTable table({"host", "anonymous", "pinned", "file-backed", "capacity", "fullest phase"},
                  {false, true, true, true, true, false});
  for (const auto& [figures, hosts] : rows) {
    std::vector<std::string> row = {clip(ranges(hosts), 36)};
    row.insert(row.end(), figures.begin(), figures.end());
    table.add(std::move(row));
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
    out += wrap(
        fmt::format("host{} {}: rank{} {} on physical GPU{} {}{}", alike.size() == 1 ? "" : "s",
                    ranges(alike), ranks.size() == 1 ? "" : "s", ranges(ranks),
                    cards.used.size() == 1 ? "" : "s", fmt::join(cards.used, " "),
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
    by_exit[{exit.exit_code, exit.signal}].push_back(exit.rank);
  }
  std::string out = by_exit.empty() ? "" : "Processes:\n";
  for (const auto& [exit, ranks] : by_exit) {
    out += wrap(fmt::format("{}: exit code {}{}", ranks_text(ranks), exit.first,
                            exit.second.empty() ? "" : " (" + exit.second + ")"),
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
  if (step.mfu) line += fmt::format(", MFU {:.1f}%", 100 * *step.mfu);
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
