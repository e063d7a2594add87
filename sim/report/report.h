// The answer: verdict, peaks, breakdown, step time, assumptions. Data; the writers print it.
// Field meanings are those of the JSON contract (rehearse.report/1).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/program/program.h"
#include "sim/scenario/scenario.h"
#include "sim/timeline/timeline.h"

namespace sim::report {

// All intervals of one phase name of one rank class, together.
struct PhaseSummary {
  std::string name;
  Instant begin, end;
  Bytes peak_allocated, peak_reserved, end_allocated, end_reserved, peak_device_used;
  std::array<Bytes, kMemoryClasses> peak_by_class{};
  Bytes host_anonymous, host_pinned;
  std::int64_t warnings = 0, alloc_retries = 0;
};

struct RankSummary {
  std::vector<RankId> ranks;  // the first stands for the others
  std::vector<PhaseSummary> phases;
};

// Who owned the device's memory at one moment.
struct LedgerLine {
  MemoryClass memory_class = MemoryClass::temporaries;
  std::string owner;  // module path with layer numbers folded: model.layers.*.mlp
  std::string what;   // "state-dict clone", "saved for backward by silu"
  Bytes bytes;
  std::int64_t tensors = 0;
};
struct Ledger {
  RankId rank;
  std::string phase, moment;  // moment: "when lm_head.weight could not be cloned"
  Bytes allocated, reserved, external, total, free;
  std::vector<LedgerLine> lines;  // largest first
};

struct StepSummary {
  Duration time, low, high, forward, backward, optimizer, exposed_communication, bubble;
  double tokens_per_second = 0, model_tflops_per_gpu = 0, mfu = 0;
};

struct PlacementLine {
  RankId rank;
  std::uint32_t host = 0, local_rank = 0, physical_gpu = 0;
};
struct IdleGpu {
  std::uint32_t host = 0, physical_gpu = 0;
};

struct Report {
  std::string scenario;
  std::map<std::string, std::string> software;
  Verdict verdict;
  std::vector<PlacementLine> placement;
  std::vector<IdleGpu> idle_gpus;
  std::vector<ProcessExit> processes;
  std::vector<RankSummary> ranks;
  std::vector<HostRecord> hosts;
  std::optional<StepSummary> step;  // absent where no steady step was reached
  std::vector<WarningRecord> warnings;
  std::optional<Ledger> ledger;  // at the worst moment
  std::vector<Assumption> assumptions;
};

// What analyse() needs beside the timeline.
struct Subject {
  const Scenario& scenario;
  const program::Workload& workload;
  Flops model_flops_per_step;        // forward and backward of the global batch, no recompute
  std::int64_t tokens_per_step = 0;  // global batch
  Assumptions assumptions;           // scenario's and those of later floors
};
Report analyse(const Subject& subject, const Timeline& timeline);

}  // namespace sim::report
