// The contract rehearse.report/1: one object, every field present, null where the run does not have
// it. Sizes are integer bytes, times are seconds.
#include <optional>

#include <nlohmann/json.hpp>

#include "sim/report/verdict_text.h"
#include "sim/report/writers/writer.h"

namespace sim::report {

namespace {

using Json = nlohmann::ordered_json;

Json seconds(const std::optional<Duration>& duration) {
  return duration ? Json(to_seconds(*duration)) : Json(nullptr);
}

Json numbers(const std::vector<RankId>& ranks) {
  Json list = Json::array();
  for (const RankId rank : ranks) list.push_back(rank.value);
  return list;
}

void set_rank(Json& json, const Report& report, RankId rank) {
  json["rank"] = rank.value;
  if (rank.value >= report.placement.size()) return;
  json["local_rank"] = report.placement[rank.value].local_rank;
  json["host"] = report.placement[rank.value].host;
}

void fill(Json&, const Report&, const Fits&) {}

void fill(Json& json, const Report& report, const CudaOutOfMemory& oom) {
  set_rank(json, report, oom.rank);
  json["requested_bytes"] = oom.requested.count;
  json["tried_to_allocate_bytes"] = oom.tried.count;
  json["allocated_bytes"] = oom.allocated.count;
  json["reserved_bytes"] = oom.reserved.count;
  json["free_bytes"] = oom.free.count;
  json["total_bytes"] = oom.total.count;
  json["tensor"] = oom.tensor;
}

void fill(Json& json, const Report& report, const HostOutOfMemory& oom) {
  set_rank(json, report, oom.rank);
  json["host"] = oom.host.value;
  json["requested_bytes"] = oom.requested.count;
  json["total_bytes"] = oom.capacity.count;
  json["free_bytes"] = (oom.capacity - held_before(oom)).count;
}

void fill(Json& json, const Report& report, const Crashed& crash) {
  set_rank(json, report, crash.rank);
  json["allocated_bytes"] = crash.allocated.count;
  json["reserved_bytes"] = crash.reserved.count;
  json["free_bytes"] = crash.free.count;
  json["total_bytes"] = crash.total.count;
}

void fill(Json& json, const Report&, const Hang& hang) {
  json["hang"] = {{"waiting_ranks", numbers(hang.waiting)},
                  {"collective", to_text(hang.collective)},
                  {"scope", hang.scope},
                  {"missing_ranks", numbers(hang.missing)},
                  {"missing_is_doing", hang.missing_is_doing},
                  {"watchdog_seconds", to_seconds(hang.watchdog)}};
}

template <class Failure>
void fill_place(Json& json, const Failure& failure) {
  json["phase"] = failure.phase;
  json["scope"] = failure.scope;
  json["message"] = failure.message;
}
void fill_place(Json&, const Fits&) {}

Json verdict_json(const Report& report) {
  Json json = {{"kind", kind_of(report.verdict)}};
  for (const char* key : {"rank", "local_rank", "host", "phase", "scope", "message",
                          "requested_bytes", "tried_to_allocate_bytes", "allocated_bytes",
                          "reserved_bytes", "free_bytes", "total_bytes", "tensor", "hang"}) {
    json[key] = nullptr;
  }
  std::visit(
      [&](const auto& verdict) {
        fill_place(json, verdict);
        fill(json, report, verdict);
      },
      report.verdict);
  json["sentence"] = verdict_sentence(report);
  return json;
}

Json phase_json(const PhaseSummary& phase) {
  Json by_class = Json::object();
  for (int c = 0; c < kMemoryClasses; ++c) {
    by_class[std::string(to_text(static_cast<MemoryClass>(c)))] =
        phase.peak_by_class[static_cast<std::size_t>(c)].count;
  }
  return {{"name", phase.name},
          {"begin_seconds", to_seconds(phase.begin)},
          {"end_seconds", to_seconds(phase.end)},
          {"peak_allocated_bytes", phase.peak_allocated.count},
          {"peak_reserved_bytes", phase.peak_reserved.count},
          {"end_allocated_bytes", phase.end_allocated.count},
          {"end_reserved_bytes", phase.end_reserved.count},
          {"peak_device_used_bytes", phase.peak_device_used.count},
          {"peak_by_class", by_class},
          {"host_anonymous_bytes", phase.host_anonymous.count},
          {"host_pinned_bytes", phase.host_pinned.count},
          {"warnings", phase.warnings},
          {"alloc_retries", phase.alloc_retries}};
}

Json rank_json(const RankSummary& summary) {
  Json phases = Json::array();
  for (const PhaseSummary& phase : summary.phases) phases.push_back(phase_json(phase));
  const std::vector<RankId> others(summary.ranks.begin() + 1, summary.ranks.end());
  return {{"rank", summary.ranks.front().value},
          {"same_as", numbers(others)},
          {"total_bytes", summary.total.count},
          {"outside_allocator_bytes", summary.external.count},
          {"phases", phases}};
}

Json host_json(const HostRecord& host) {
  Json phases = Json::array();
  for (const HostPhaseRecord& phase : host.phases) {
    phases.push_back({{"name", phase.name},
                      {"peak_anonymous_bytes", phase.peak_anonymous.count},
                      {"peak_pinned_bytes", phase.peak_pinned.count},
                      {"peak_file_backed_bytes", phase.peak_file_backed.count},
                      {"begin_anonymous_bytes", phase.begin_anonymous.count}});
  }
  return {{"host", host.host.value},
          {"capacity_bytes", host.capacity.count},
          {"peak_anonymous_bytes", host.peak_anonymous.count},
          {"peak_pinned_bytes", host.peak_pinned.count},
          {"peak_file_backed_bytes", host.peak_file_backed.count},
          {"phases", phases}};
}

Json step_json(const std::optional<StepSummary>& step) {
  if (!step) return nullptr;
  return {{"seconds", to_seconds(step->time)},
          {"seconds_low", seconds(step->low)},
          {"seconds_high", seconds(step->high)},
          {"forward_seconds", seconds(step->forward)},
          {"backward_seconds", seconds(step->backward)},
          {"optimizer_seconds", seconds(step->optimizer)},
          {"exposed_communication_seconds", seconds(step->exposed_communication)},
          {"bubble_seconds", seconds(step->bubble)},
          {"tokens_per_second", step->tokens_per_second},
          {"model_tflops_per_gpu", step->model_tflops_per_gpu},
          {"mfu", step->mfu ? Json(*step->mfu) : Json(nullptr)}};
}

Json warning_json(const WarningRecord& warning) {
  return {{"rank", warning.rank.value},
          {"phase", warning.phase},
          {"scope", warning.scope},
          {"text", warning.text},
          {"count", warning.count},
          {"tried_to_allocate_bytes", warning.tried.count},
          {"allocated_bytes", warning.allocated.count},
          {"reserved_bytes", warning.reserved.count},
          {"free_bytes", warning.free.count}};
}

Json ledger_json(const std::optional<Ledger>& ledger) {
  if (!ledger) return nullptr;
  Json lines = Json::array();
  for (const LedgerLine& line : ledger->lines) {
    lines.push_back({{"class", to_text(line.memory_class)},
                     {"owner", line.owner},
                     {"what", line.what},
                     {"bytes", line.bytes.count},
                     {"tensors", line.tensors}});
  }
  return {{"rank", ledger->rank.value},
          {"phase", ledger->phase},
          {"moment", ledger->moment},
          {"allocated_bytes", ledger->allocated.count},
          {"reserved_bytes", ledger->reserved.count},
          {"outside_allocator_bytes", ledger->external.count},
          {"free_bytes", ledger->free.count},
          {"total_bytes", ledger->total.count},
          {"allocator_rounding_bytes", ledger->rounding.count},
          {"lines", lines}};
}

Json host_ledger_json(const std::optional<HostLedger>& ledger) {
  if (!ledger) return nullptr;
  Json lines = Json::array();
  for (const HostLedgerLine& line : ledger->lines) {
    lines.push_back({{"kind", to_text(line.kind)},
                     {"what", line.what},
                     {"bytes", line.bytes.count},
                     {"processes", line.processes}});
  }
  return {{"host", ledger->host.value}, {"lines", lines}};
}

template <class Item, class Convert>
Json list(const std::vector<Item>& items, Convert convert) {
  Json all = Json::array();
  for (const Item& item : items) all.push_back(convert(item));
  return all;
}

std::string write_json(const Report& report, const WriteOptions&) {
  Json json = {{"schema", "rehearse.report/1"}, {"scenario", report.scenario}};
  json["software"] = Json::object();
  for (const auto& [library, release] : report.software) json["software"][library] = release;
  json["verdict"] = verdict_json(report);
  json["placement"] = list(report.placement, [](const PlacementLine& line) {
    return Json{{"rank", line.rank.value},
                {"host", line.host},
                {"local_rank", line.local_rank},
                {"physical_gpu", line.physical_gpu}};
  });
  json["idle_gpus"] = list(report.idle_gpus, [](const IdleGpu& idle) {
    return Json{{"host", idle.host}, {"physical_gpu", idle.physical_gpu}};
  });
  json["processes"] = list(report.processes, [](const ProcessExit& exit) {
    return Json{{"rank", exit.rank.value},
                {"exit_code", exit.exit_code},
                {"signal", exit.signal.empty() ? Json(nullptr) : Json(exit.signal)}};
  });
  json["ranks"] = list(report.ranks, rank_json);
  json["hosts"] = list(report.hosts, host_json);
  json["step"] = step_json(report.step);
  json["warnings"] = list(report.warnings, warning_json);
  json["ledger"] = ledger_json(report.ledger);
  json["host_ledger"] = host_ledger_json(report.host_ledger);
  json["assumptions"] = list(report.assumptions, [](const Assumption& assumption) {
    return Json{{"key", assumption.key}, {"value", assumption.value}, {"why", assumption.why}};
  });
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

const Writer kJson{"json", "the report as one JSON object, rehearse.report/1", write_json};

}  // namespace sim::report
