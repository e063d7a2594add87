// One simulated rank: its host thread, streams and memory. It runs its program by itself as far as
// nothing it does can be seen by others, or depends on them; where it can, run() stops and says
// why.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/saturating.h"
#include "sim/base/units.h"
#include "sim/engine/costs.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/pending_frees.h"
#include "sim/engine/phase_log.h"
#include "sim/engine/streams.h"
#include "sim/memory/caching_allocator.h"
#include "sim/memory/device_memory.h"
#include "sim/memory/oom_message.h"
#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// Why run() stopped. In the last three the op at hand is not done: the caller does it, then calls
// step_over().
enum class Stop : std::uint8_t {
  none,         // (inside run() only) go on
  yield,        // another rank is behind and could matter for the next op
  waits,        // the host waits for work that is not timed yet; the op at hand is done
  blocked,      // the same, but the op at hand is yet to be done
  parts,        // end of what this rank does for several programs
  finished,     // end of the program
  failed,       // failure() says how
  collective,   // a Collective
  host_memory,  // a HostAlloc or HostFree
  phase         // a BeginPhase
};

// What the timeline says of things by number; null where slices are not recorded.
struct SliceLabels {
  IdVector<program::KernelId, std::uint32_t> kernels;
  IdVector<program::CollectiveId, std::uint32_t> collectives;
  std::uint32_t copy = 0, host_work = 0, waiting = 0, allocator = 0;
  IdVector<ScopeId, ScopeId> scopes;  // of the program -> of the timeline
};

// Where a rank writes what it did; null members record nothing.
struct Recording {
  std::vector<Slice>* slices = nullptr;
  std::vector<MemorySample>* memory = nullptr;
  std::vector<TraceEvent>* allocator = nullptr;
  std::vector<Repeat>* repeats = nullptr;
  const SliceLabels* labels = nullptr;
};

// Whom a simulated rank stands for, and what they run. Everything referred to must outlive it.
struct Identity {
  std::uint32_t index = 0;  // its number among the simulated ranks
  std::vector<RankId> ranks;
  int local_rank = 0;  // of the first
  const program::Program* program = nullptr;
  std::uint32_t program_end = 0;  // ops of it to run
  bool parts = false;             // others go on from there
  const Costs* costs = nullptr;
  Recording recording;
  bool may_skip_iterations = false;
};

// The device memory of one process.
struct ProcessMemory {
  explicit ProcessMemory(const Machine& machine);
  ProcessMemory(const ProcessMemory& other);

  memory::DeviceMemory device;
  memory::ModelDriver driver;
  memory::CachingAllocator allocator;
};

class Rank {
 public:
  Rank(Identity identity, const Machine& machine);
  // Goes on for some of those that `start` stood for; their program begins like its own.
  Rank(const Rank& start, Identity identity);
  Rank& operator=(const Rank&) = delete;

  // Goes on until something stops it. An op that others could see is done only while the own turn
  // is before `horizon`.
  Stop run(const Turn& horizon);

  const program::Op& op() const { return program().ops[next_op_]; }
  void step_over() {
    ++next_op_;
    ++issued_;
  }
  Turn turn() const { return {host_now_, issued_, self_.index}; }
  Instant now() const { return host_now_; }

  // For the caller's ops.
  void enter(std::uint32_t call, program::CollectiveId id);  // as the rendezvous numbers it
  void begin_phase(program::PhaseId phase) { phases_.begin(phase, host_now_); }
  void hold_on_host(HostMemoryKind kind, Bytes change) { phases_.hold_on_host(kind, change); }
  // Swaps in whether the buffer is allocated now; returns whether it was.
  bool exchange_buffer(program::HostBufferId buffer, bool allocated);

  // Called when streams have moved on: true if the host, which waited, can go on.
  bool wake();
  bool waiting() const { return waiting_; }
  bool finished() const { return finished_; }
  const std::optional<Verdict>& failure() const { return failure_; }

  const std::vector<RankId>& ranks() const { return self_.ranks; }
  const program::Program& program() const { return *self_.program; }
  const Costs& costs() const { return *self_.costs; }
  Streams& streams() { return streams_; }
  std::string phase_name() const { return phases_.name(program()); }
  std::string scope_name(ScopeId scope) const;

  // Closes the last phase and hands the record out.
  RankRecord close(std::uint32_t program);

 private:
  Rank(const Rank&) = default;

  struct Tensor {
    memory::BlockId block;
    std::uint16_t used_on = 0;  // a bit per StreamRole: record_stream
    bool dangling = false;      // its warn-and-go-on allocation failed
  };
  // An allocation whose failure the script catches and warns of.
  struct CaughtFailure {
    program::TensorId tensor;
    ScopeId scope;
    program::PhaseId phase;
    memory::OomFigures figures;
  };
  // The end of an iteration: what the rest of the loop depends on, and the counters of that moment.
  struct LoopState {
    std::uint64_t fingerprint = 0;
    program::PhaseId phase;
    PhaseRecord open;  // the phase that is open
    std::uint64_t iteration = 0;
    Instant at{};
    std::int64_t launches = 0, retries = 0;
    std::uint64_t issued = 0;
    std::size_t phases_ended = 0, caught = 0;
  };
  struct LoopFrame {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t left = 0;       // iterations after this one
    std::uint64_t iteration = 1;  // this one
    std::optional<LoopState> known;
  };
  Stop exec(const program::Alloc& body, const program::Op& op);
  Stop exec(const program::Free& body, const program::Op& op);
  Stop exec(const program::RecordStream& body, const program::Op& op);
  Stop exec(const program::Launch& body, const program::Op& op);
  Stop exec(const program::Collective& body, const program::Op& op);
  Stop exec(const program::Copy& body, const program::Op& op);
  Stop exec(const program::HostWork& body, const program::Op& op);
  Stop exec(const program::HostAlloc& body, const program::Op& op);
  Stop exec(const program::HostFree& body, const program::Op& op);
  Stop exec(const program::EmptyCache& body, const program::Op& op);
  Stop exec(const program::ExternalAlloc& body, const program::Op& op);
  Stop exec(const program::ExternalFree& body, const program::Op& op);
  Stop exec(const program::RecordEvent& body, const program::Op& op);
  Stop exec(const program::WaitEvent& body, const program::Op& op);
  Stop exec(const program::Synchronize& body, const program::Op& op);
  Stop exec(const program::BeginPhase& body, const program::Op& op);
  Stop exec(const program::Loop& body, const program::Op& op);

  // rank_memory.cpp
  void release(program::TensorId id);
  Stop pay_driver(bool waits, std::int64_t mallocs, std::int64_t frees);
  Stop allocation_failed(const program::Alloc& body, const program::Op& op, Bytes tried);
  void note_memory();
  void name_events(program::TensorId tensor = {});

  memory::OomFigures oom_figures(Bytes tried) const;
  std::vector<WarningRecord> warnings() const;

  void spend(Duration time) { host_now_ = saturating_add(host_now_, time); }
  Stop wait_for(const Mark& mark);
  Stop wait_for_room(StreamRole stream);
  Stop wait_for_device();
  Stop finish();
  bool behind() const { return turn() > horizon_; }

  // rank_loops.cpp
  void end_iteration();
  void skip_repeats(LoopFrame& frame);
  LoopState loop_state(std::uint64_t iteration) const;
  std::uint64_t fingerprint() const;
  void repeat_since(const LoopState& before, std::int64_t times);
  void cut_slices(Duration by);

  Label label(SliceKind kind, std::uint32_t text, ScopeId scope) const;
  void host_slice(SliceKind kind, Instant begin, std::uint32_t text, ScopeId scope);

  Identity self_;
  const Machine* machine_;
  Turn horizon_{};

  Instant host_now_{};
  std::uint32_t next_op_ = 0;
  std::uint32_t loop_end_;  // of the innermost loop, or of all that is to run
  std::uint64_t issued_ = 0;
  std::int64_t launches_ = 0;
  std::vector<LoopFrame> loops_;

  bool waiting_ = false, finished_ = false, drained_ = false;
  Mark host_waits_for_[kStreamRoles];
  int host_waits_ = 0;
  Duration owed_{};  // host time to spend once the wait is over

  Streams streams_;
  std::vector<Mark> events_;
  ProcessMemory memory_;
  PendingFrees pending_;
  IdVector<program::TensorId, Tensor> tensors_;
  IdVector<program::ExternalId, std::uint8_t> externals_;
  IdVector<program::HostBufferId, std::uint8_t> host_buffers_;

  PhaseLog phases_;
  std::vector<CaughtFailure> caught_;
  std::optional<Verdict> failure_;
};

}  // namespace sim::engine
