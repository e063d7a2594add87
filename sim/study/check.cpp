#include "sim/study/check.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/report/verdict_text.h"
#include "sim/scenario/config_value.h"
#include "sim/study/tolerance.h"

namespace sim::study {

namespace {

using report::Report;

// The allocator's counters at the failure that the memory figures are about.
struct Failure {
  std::string scope;
  std::optional<Bytes> requested, tried, allocated, reserved, free, total;
};

struct Checker {
  const Report& report;
  Failure failure;
  Diagnostics& diagnostics;
  std::vector<CheckLine> lines;
};

// `scope` is `name`, or ends in it: wrappers put prefixes in front of a module's path.
bool names(std::string_view scope, std::string_view name) {
  return scope.ends_with(name) &&
         (scope.size() == name.size() || scope[scope.size() - name.size() - 1] == '.');
}

Failure failure_of(const WarningRecord& warning) {
  return {warning.scope,    std::nullopt, warning.tried, warning.allocated,
          warning.reserved, warning.free, std::nullopt};
}

Failure find_failure(const Report& report, std::string_view tensor) {
  if (const auto* oom = std::get_if<CudaOutOfMemory>(&report.verdict)) {
    return {oom->scope,    oom->requested, oom->tried, oom->allocated,
            oom->reserved, oom->free,      oom->total};
  }
  if (const auto* oom = std::get_if<HostOutOfMemory>(&report.verdict)) {
    const Bytes free = oom->capacity - report::held_before(*oom);
    return {oom->scope, oom->requested, {}, {}, {}, free, oom->capacity};
  }
  for (auto it = report.warnings.rbegin(); it != report.warnings.rend(); ++it) {
    if (it->tried.count > 0 && (tensor.empty() || names(it->scope, tensor))) {
      return failure_of(*it);
    }
  }
  if (const auto* crash = std::get_if<Crashed>(&report.verdict)) {
    return {crash->scope, {}, {}, crash->allocated, crash->reserved, crash->free, crash->total};
  }
  return {};
}

void add(Checker& checker, std::string key, std::string expected, std::string found, bool pass) {
  checker.lines.push_back({std::move(key), std::move(expected), std::move(found), "", pass});
}

void check_figure(Checker& checker, const Expectation& expectation, Quantity quantity,
                  std::optional<double> found) {
  const auto band = read_band(expectation.value, quantity, expectation.key, checker.diagnostics);
  if (!band) return;
  CheckLine line{expectation.key, band->text, "nothing", "", false};
  if (found) {
    line.found = quantity_text(*found, quantity);
    line.deviation = deviation_text(*found, *band, quantity);
    line.pass = contains(*band, *found);
  }
  checker.lines.push_back(std::move(line));
}

void check_bytes(Checker& checker, const Expectation& expectation,
                 const std::optional<Bytes>& found) {
  check_figure(checker, expectation, Quantity::bytes,
               found ? std::optional(static_cast<double>(found->count)) : std::nullopt);
}

// False and an error where the value is no single word or text.
bool require_scalar(Checker& checker, const Expectation& expectation) {
  if (expectation.value.is_scalar()) return true;
  checker.diagnostics.error(expectation.value.at,
                            fmt::format("expect.{} has to be one value", expectation.key));
  return false;
}

template <class Matches>
void check_text(Checker& checker, const Expectation& expectation, std::string_view found,
                Matches matches) {
  if (!require_scalar(checker, expectation)) return;
  const std::string& expected = expectation.value.text;
  add(checker, expectation.key, expected, found.empty() ? "nothing" : std::string(found),
      matches(found, expected));
}

// A word of a closed set. `is` says whether `expected` is one of them.
template <class Is>
bool require_word(Checker& checker, const Expectation& expectation, std::string_view kind,
                  const std::vector<std::string>& words, Is is) {
  if (!require_scalar(checker, expectation)) return false;
  const std::string& expected = expectation.value.text;
  for (const std::string& word : words) {
    if (is(expected, word)) return true;
  }
  report_unknown_name(kind, {expected, expectation.value.at}, words, checker.diagnostics);
  return false;
}

// The phases of a job's life. A trainer may add sub-phases.
bool require_phase(Checker& checker, const Expectation& expectation) {
  const std::vector<std::string> words = {
      "init",           "load",          "prepare",        "wrap",
      "optimizer_init", "step0.forward", "step0.backward", "step0.optimizer",
      "step",           "evaluate",      "save",           "resume"};
  return require_word(checker, expectation, "phase", words,
                      [](std::string_view phase, std::string_view word) {
                        return phase == "step0" || report::is_in(phase, word);
                      });
}

// A list of whole numbers, in any order.
void check_numbers(Checker& checker, const Expectation& expectation,
                   std::vector<std::uint32_t> found) {
  std::vector<std::uint32_t> expected;
  const bool list = expectation.value.is_sequence();
  for (const ConfigNode& item : expectation.value.items) {
    const auto number = read_value<std::int64_t>(item, {expectation.key}, checker.diagnostics);
    if (!number) return;
    expected.push_back(static_cast<std::uint32_t>(*number));
  }
  if (!list) {
    checker.diagnostics.error(expectation.value.at,
                              fmt::format("expect.{} has to be a list", expectation.key), "[3, 2]");
    return;
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  const auto text = [](const std::vector<std::uint32_t>& numbers) {
    return numbers.empty() ? std::string("none") : report::ranges(numbers);
  };
  add(checker, expectation.key, text(expected), text(found), expected == found);
}

std::vector<std::uint32_t> numbers_of(const std::vector<RankId>& ranks) {
  std::vector<std::uint32_t> numbers;
  for (const RankId rank : ranks) numbers.push_back(rank.value);
  return numbers;
}

std::string_view scope_of(const Verdict& verdict) {
  return std::visit(
      [](const auto& v) -> std::string_view {
        if constexpr (requires { v.scope; }) {
          return v.scope;
        } else {
          return {};
        }
      },
      verdict);
}

// peak_allocated: 20 GiB (of the whole run), or a map from phases to figures.
void check_peak(Checker& checker, const Expectation& expectation,
                Bytes report::PhaseSummary::*peak) {
  const auto highest = [&](std::string_view phase) {
    std::optional<Bytes> found;
    for (const report::RankSummary& rank : checker.report.ranks) {
      for (const report::PhaseSummary& p : rank.phases) {
        if (phase.empty() || p.name == phase) found = std::max(found.value_or(Bytes{}), p.*peak);
      }
    }
    return found;
  };
  const ConfigNode& value = expectation.value;
  const bool tolerance = value.find("value") != nullptr || value.find("under") != nullptr ||
                         value.find("over") != nullptr;
  if (!value.is_map() || tolerance) {
    check_bytes(checker, expectation, highest(""));
    return;
  }
  for (const ConfigNode::Entry& entry : value.entries) {
    check_bytes(checker, {expectation.key + "." + entry.key, entry.value}, highest(entry.key));
  }
}

std::optional<Bytes> host_peak(const Report& report) {
  std::optional<Bytes> peak;
  for (const HostRecord& host : report.hosts) {
    peak = std::max(peak.value_or(Bytes{}), host.peak_anonymous + host.peak_pinned);
  }
  return peak;
}

bool check_memory_key(Checker& checker, const Expectation& expectation, const Failure& failure) {
  const std::pair<std::string_view, const std::optional<Bytes>*> figures[] = {
      {"requested", &failure.requested}, {"tried", &failure.tried},
      {"allocated", &failure.allocated}, {"reserved", &failure.reserved},
      {"free", &failure.free},           {"total", &failure.total}};
  for (const auto& [key, figure] : figures) {
    if (key != expectation.key) continue;
    check_bytes(checker, expectation, *figure);
    return true;
  }
  return false;
}

// One entry of the list form of `warnings`: the warnings about its tensor, the nearest of them.
void check_warning(Checker& checker, const ConfigNode& node, const std::string& prefix) {
  const ConfigNode* tensor = node.find("tensor");
  if (tensor == nullptr || !tensor->is_scalar()) {
    checker.diagnostics.error(node.at, "an expected warning has to name its tensor",
                              "{tensor: lm_head.weight, tried: 500.00 MiB}");
    return;
  }
  const WarningRecord* found = nullptr;
  for (const WarningRecord& warning : checker.report.warnings) {
    if (names(warning.scope, tensor->text)) found = &warning;
  }
  add(checker, prefix + "tensor", tensor->text, found == nullptr ? "nothing" : found->scope,
      found != nullptr);
  const Failure failure = found == nullptr ? Failure{} : failure_of(*found);
  for (const ConfigNode::Entry& entry : node.entries) {
    if (entry.key == "tensor") continue;
    const std::size_t first = checker.lines.size();
    if (!check_memory_key(checker, {entry.key, entry.value}, failure)) {
      report_unknown_name("key of an expected warning", {entry.key, entry.key_at},
                          {"tensor", "tried", "allocated", "reserved", "free"},
                          checker.diagnostics);
    }
    for (std::size_t i = first; i < checker.lines.size(); ++i) {
      checker.lines[i].key = prefix + checker.lines[i].key;
    }
  }
}

void check_warnings(Checker& checker, const Expectation& expectation) {
  const ConfigNode& value = expectation.value;
  const bool list_of_maps = value.is_sequence() && !value.items.empty() && value.items[0].is_map();
  if (list_of_maps) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      check_warning(checker, value.items[i], fmt::format("warnings[{}].", i));
    }
    return;
  }
  std::int64_t count = 0;
  for (const WarningRecord& warning : checker.report.warnings) count += warning.count;
  check_figure(checker, expectation, Quantity::number, static_cast<double>(count));
}

// {3: -9}: the exit code of each named rank.
void check_exit_codes(Checker& checker, const Expectation& expectation) {
  if (!expectation.value.is_map()) {
    checker.diagnostics.error(expectation.value.at, "expect.exit_codes has to be a map", "{3: -9}");
    return;
  }
  for (const ConfigNode::Entry& entry : expectation.value.entries) {
    std::string found = "nothing";
    for (const ProcessExit& exit : checker.report.processes) {
      if (std::to_string(exit.rank.value) == entry.key) found = std::to_string(exit.exit_code);
    }
    add(checker, "exit_codes." + entry.key, entry.value.text, found, found == entry.value.text);
  }
}

void check_first_failed_layer(Checker& checker, const Expectation& expectation) {
  std::optional<double> layer;
  if (checker.report.caught_failures) {
    const std::int64_t found = report::layer_of(checker.report.caught_failures->first_scope);
    if (found >= 0) layer = static_cast<double>(found);
  } else if (const std::int64_t found = report::layer_of(scope_of(checker.report.verdict));
             found >= 0) {
    layer = static_cast<double>(found);
  }
  check_figure(checker, expectation, Quantity::number, layer);
}

const Hang* hang_of(const Checker& checker) { return std::get_if<Hang>(&checker.report.verdict); }

struct Key {
  std::string_view name;
  void (*check)(Checker&, const Expectation&);
};

constexpr Key kKeys[] = {
    {"verdict",
     [](Checker& c, const Expectation& e) {
       if (!require_word(c, e, "verdict", report::verdict_kinds(), std::equal_to<>())) return;
       check_text(c, e, report::kind_of(c.report.verdict), std::equal_to<std::string_view>());
     }},
    {"phase",
     [](Checker& c, const Expectation& e) {
       if (!require_phase(c, e)) return;
       check_text(c, e, report::phase_of(c.report.verdict), report::is_in);
     }},
    {"scope",
     [](Checker& c, const Expectation& e) { check_text(c, e, scope_of(c.report.verdict), names); }},
    {"tensor", [](Checker& c, const Expectation& e) { check_text(c, e, c.failure.scope, names); }},
    {"message",
     [](Checker& c, const Expectation& e) {
       check_text(c, e, report::message_of(c.report.verdict),
                  [](std::string_view found, std::string_view part) {
                    return found.find(part) != std::string_view::npos;
                  });
     }},
    {"first_failed_layer", check_first_failed_layer},
    {"warnings", check_warnings},
    {"exit_codes", check_exit_codes},
    {"idle_gpus",
     [](Checker& c, const Expectation& e) {
       std::vector<std::uint32_t> cards;
       for (const report::IdleGpu& idle : c.report.idle_gpus) cards.push_back(idle.physical_gpu);
       check_numbers(c, e, std::move(cards));
     }},
    {"waiting_ranks",
     [](Checker& c, const Expectation& e) {
       check_numbers(c, e, hang_of(c) ? numbers_of(hang_of(c)->waiting) : numbers_of({}));
     }},
    {"missing_ranks",
     [](Checker& c, const Expectation& e) {
       check_numbers(c, e, hang_of(c) ? numbers_of(hang_of(c)->missing) : numbers_of({}));
     }},
    {"collective",
     [](Checker& c, const Expectation& e) {
       check_text(c, e, hang_of(c) ? sim::to_text(hang_of(c)->collective) : "",
                  std::equal_to<std::string_view>());
     }},
    {"watchdog",
     [](Checker& c, const Expectation& e) {
       check_figure(c, e, Quantity::duration,
                    hang_of(c) ? std::optional(to_seconds(hang_of(c)->watchdog)) : std::nullopt);
     }},
    {"peak_allocated",
     [](Checker& c, const Expectation& e) {
       check_peak(c, e, &report::PhaseSummary::peak_allocated);
     }},
    {"peak_reserved",
     [](Checker& c, const Expectation& e) {
       check_peak(c, e, &report::PhaseSummary::peak_reserved);
     }},
    {"peak_device_used",
     [](Checker& c, const Expectation& e) {
       check_peak(c, e, &report::PhaseSummary::peak_device_used);
     }},
    {"peak_host", [](Checker& c, const Expectation& e) { check_bytes(c, e, host_peak(c.report)); }},
    {"step",
     [](Checker& c, const Expectation& e) {
       check_figure(c, e, Quantity::duration,
                    c.report.step ? std::optional(to_seconds(c.report.step->time)) : std::nullopt);
     }},
};

void check_one(Checker& checker, const Expectation& expectation) {
  for (const Key& key : kKeys) {
    if (key.name == expectation.key) {
      key.check(checker, expectation);
      return;
    }
  }
  if (check_memory_key(checker, expectation, checker.failure)) return;
  std::vector<std::string> known = {"requested", "tried", "allocated", "reserved", "free", "total"};
  for (const Key& key : kKeys) known.emplace_back(key.name);
  report_unknown_name("key of expect", {expectation.key, expectation.value.at}, known,
                      checker.diagnostics);
}

}  // namespace

std::vector<CheckLine> check_expectations(const std::vector<Expectation>& expectations,
                                          const report::Report& report, Diagnostics& diagnostics) {
  std::string_view tensor;
  for (const Expectation& expectation : expectations) {
    if (expectation.key == "tensor") tensor = expectation.value.text;
  }
  Checker checker{report, find_failure(report, tensor), diagnostics, {}};
  for (const Expectation& expectation : expectations) check_one(checker, expectation);
  return std::move(checker.lines);
}

bool all_pass(const std::vector<CheckLine>& lines) {
  return std::all_of(lines.begin(), lines.end(), [](const CheckLine& line) { return line.pass; });
}

std::string to_text(const std::vector<CheckLine>& lines) {
  TextTable table({"", "key", "expected", "found", "off by"});
  for (const CheckLine& line : lines) {
    table.add({line.pass ? "ok" : "MISS", line.key, line.expected, line.found, line.deviation});
  }
  return table.text(2);
}

}  // namespace sim::study
