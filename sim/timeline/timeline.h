// What happened, simulated or measured. Data only: the engine and the readers of recordings fill
// it, the report reads it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/timeline/allocator_trace.h"

namespace sim {

enum class SliceKind : std::uint8_t { kernel, collective, copy, host_work, wait, allocator };

// A stretch of one stream (or, with `on_host`, of the host thread).
struct Slice {
  RankId rank;
  StreamRole stream = StreamRole::compute;
  bool on_host = false;
  SliceKind kind = SliceKind::kernel;
  Instant begin, end;
  ScopeId scope;            // into Timeline::scopes
  std::uint32_t label = 0;  // into Timeline::labels
};

// Allocator counters of one rank after something changed them.
struct MemorySample {
  RankId rank;
  Instant at;
  std::uint32_t op = 0;  // host order
  Bytes allocated, reserved, device_used;
};

// What a rank did in [from, until) it did `times` times more right after that, and only the first
// is on record; what follows begins times * (until - from) later. A slice across `until` is cut in
// two.
struct Repeat {
  RankId rank;
  Instant from, until;
  std::int64_t times = 0;
};

struct LinkSample {
  std::uint32_t link = 0;
  Instant begin, end;
  Bytes bytes;
};

// One interval of a rank's life under one phase name; a name can come back (micro-batches). Stays
// that a loop repeats alike are one record from the first one's begin to the last one's end.
struct PhaseRecord {
  std::string name;  // closed words of design 2.17; sub-phases after a dot
  Instant begin, end;
  Duration time{};  // under the name: less than end - begin where other phases lie between stays
  Bytes peak_allocated, peak_reserved, end_allocated, end_reserved, peak_device_used;
  std::array<Bytes, kMemoryClasses> peak_by_class{};  // each class at its own peak
  std::array<Bytes, kMemoryClasses> end_by_class{};
  std::uint32_t peak_op = 0;          // index of the op after which allocated peaked
  Bytes host_anonymous, host_pinned;  // this process's peaks
  std::int64_t warnings = 0, alloc_retries = 0;
  friend bool operator==(const PhaseRecord&, const PhaseRecord&) = default;
};

// A library's warning with the allocator's counters of that moment.
struct WarningRecord {
  RankId rank;
  std::string phase, scope;
  std::string text;  // literal
  Bytes tried, allocated, reserved, free;
  std::int64_t count = 1;  // repeats of an identical text
};

// All ranks of one class did the same; `ranks.front()` stands for them.
struct RankRecord {
  std::vector<RankId> ranks;
  std::vector<PhaseRecord> phases;  // in time order, as they happened
  std::vector<WarningRecord> warnings;
  std::uint32_t ops_done = 0;  // ops of its program that were issued
  std::uint32_t program = 0;
  std::vector<std::uint32_t> failed_allocs;  // TensorIds whose warn-and-go-on allocation failed
  Bytes external;                            // device memory outside the allocator at the end
  Bytes total;                               // of its device
  Instant finished;
  std::int64_t launches = 0;
  std::vector<SegmentView> segments;  // at the end; only where asked for
};

struct HostPhaseRecord {
  std::string name;
  Bytes peak_anonymous, peak_pinned, peak_file_backed, begin_anonymous;
};

struct HostRecord {
  HostId host;
  Bytes capacity;  // container limit where it is lower
  Bytes peak_anonymous, peak_pinned, peak_file_backed;
  std::vector<HostPhaseRecord> phases;
};

// How the job ended.
struct Fits {};
struct CudaOutOfMemory {
  RankId rank;
  std::string phase, scope, message;
  std::string tensor;  // what was to be allocated, in words
  Bytes requested, tried, allocated, reserved, free, total;
  Instant at;
};
struct HostOutOfMemory {
  HostId host;
  RankId rank;  // the process that the kernel kills
  std::string phase, scope, message;
  Bytes requested, capacity, used;
  Instant at;
};
struct Hang {
  std::vector<RankId> waiting, missing;
  CollectiveKind collective = CollectiveKind::all_gather;
  std::string phase, scope, message;
  std::string missing_is_doing;
  Duration watchdog{};
  Instant at;  // when the last waiting rank entered
};
struct Crashed {
  RankId rank;
  std::string phase, scope, message;
  Bytes allocated, reserved, free, total;
  Instant at;
};
using Verdict = std::variant<Fits, CudaOutOfMemory, HostOutOfMemory, Hang, Crashed>;

struct ProcessExit {
  RankId rank;
  int exit_code = 0;   // -9 for SIGKILL, as launchers print it
  std::string signal;  // SIGKILL, SIGTERM or empty
};

struct Timeline {
  IdVector<ScopeId, std::string> scopes;
  std::vector<std::string> labels;
  std::vector<RankRecord> ranks;  // one per class, by first rank
  std::vector<HostRecord> hosts;
  std::vector<ProcessExit> processes;        // by rank
  std::vector<Slice> slices;                 // only where asked for
  std::vector<MemorySample> memory;          // only where asked for
  std::vector<TraceEvent> allocator_events;  // only where asked for; nothing is left out
  std::vector<Repeat> repeats;  // what slices and memory leave out, in time order by rank
  std::vector<LinkSample> links;
  Verdict verdict = Fits{};
};

}  // namespace sim
