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

// One interval of a phase that comes back with every micro-batch.
struct PhaseStay {
  Bytes peak_allocated, peak_reserved, end_allocated;
};

// All intervals of one phase name of one rank class, together.
struct PhaseSummary {
  std::string name;
  Instant begin, end;
  Bytes peak_allocated, peak_reserved, end_allocated, end_reserved, peak_device_used;
  std::array<Bytes, kMemoryClasses> peak_by_class{}, end_by_class{};
  Bytes host_anonymous, host_pinned;
  std::int64_t warnings = 0, alloc_retries = 0;
  // The first interval, and those after it together: peaks of zero where there is none.
  std::optional<PhaseStay> first;
  PhaseStay later;
};

struct RankSummary {
  std::vector<RankId> ranks;         // the first stands for the others
  std::vector<PhaseSummary> phases;  // by first appearance; a phase with sub-phases covers them
  Bytes total, external;             // of the device; outside the caching allocator
};

// Who owned the device's memory at one moment.
struct LedgerLine {
  MemoryClass memory_class = MemoryClass::temporaries;
  std::string owner;  // module path with layer numbers folded: model.layers.*.mlp
  std::string what;   // "state-dict clone", "saved by silu" (for its backward)
  Bytes bytes;
  std::int64_t tensors = 0;
};
struct Ledger {
  RankId rank;
  std::string phase, moment;  // moment: "when the state-dict clone of lm_head.weight failed"
  Bytes allocated, reserved, external, total, free;
  Bytes rounding;                 // allocated less the lines: the allocator's rounding
  std::vector<LedgerLine> lines;  // largest first
};

// Who owned a host's memory when it ran out: all its processes together.
struct HostLedgerLine {
  HostMemoryKind kind = HostMemoryKind::anonymous;
  std::string what;  // "weights read from shards"
  Bytes bytes;
  std::int64_t processes = 0;
};
struct HostLedger {
  HostId host;
  std::vector<HostLedgerLine> lines;  // largest first
};

// Allocations whose failure was caught, so that the run went on with dangling entries.
struct CaughtFailures {
  std::vector<RankId> ranks;            // that met them
  std::string what;                     // of the first: "state-dict clone"
  std::string first_scope, last_scope;  // in program order
  std::int64_t count = 0;               // on one rank
};

// What a figure needs that the run does not have stays empty.
struct StepSummary {
  Duration time{};
  std::optional<Duration> low, high, forward, backward, optimizer, exposed_communication, bubble;
  double tokens_per_second = 0, model_tflops_per_gpu = 0;
  std::optional<double> mfu;  // against the card's peak for the compute dtype
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
  std::string job;  // one line: model, trainer, strategies, cluster
  std::map<std::string, std::string> software;
  Verdict verdict;
  std::vector<PlacementLine> placement;
  std::vector<IdleGpu> idle_gpus;
  std::vector<ProcessExit> processes;
  std::vector<RankSummary> ranks;
  std::vector<HostRecord> hosts;
  std::int64_t steps = 0;           // optimizer steps that the job was to run
  std::optional<StepSummary> step;  // absent where no steady step was reached
  std::vector<WarningRecord> warnings;
  std::optional<CaughtFailures> caught_failures;
  std::optional<Ledger> ledger;           // at the worst moment
  std::optional<HostLedger> host_ledger;  // where a host ran out
  std::vector<Assumption> assumptions;
};

// What analyse() needs beside the timeline.
struct Subject {
  const Scenario& scenario;
  const program::Workload& workload;
  Flops model_flops_per_step;        // forward and backward of the global batch, no recompute
  std::int64_t tokens_per_step = 0;  // global batch
  Assumptions assumptions;           // scenario's and those of later floors
  std::map<std::string, std::string> software;  // every release the run took for given
};
Report analyse(const Subject& subject, const Timeline& timeline);

}  // namespace sim::report
