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
#include "sim/base/units.h"
#include "sim/engine/costs.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/pending_frees.h"
#include "sim/engine/phase_log.h"
#include "sim/engine/streams.h"
#include "sim/memory/caching_allocator.h"
#include "sim/memory/device_memory.h"
#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// Why run() stopped. In the last three the op at hand is not done: the caller does it, then calls
// step_over().
enum class Stop : std::uint8_t {
  none,         // (inside run() only) go on
  yield,        // another rank is behind and could matter for the next op
  waits,        // the host waits for work that is not timed yet
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

// Where an iteration of a loop began.
struct IterationStart {
  Instant at{};
  std::int64_t launches = 0;
  std::uint64_t issued = 0;
  std::size_t records = 0;  // phases and warnings so far
};

// What an iteration left behind. Where two in a row leave the same, so do the rest.
struct IterationState {
  Duration step{};              // host time that it took
  std::vector<Duration> waits;  // of streams, events, pending frees: from the host's clock on
  std::uint64_t memory = 0;     // hash of all blocks and of which tensor holds which
  Bytes device_used, host_anonymous, host_pinned;
  std::int64_t retries = 0;
  bool silent = false;  // no phase began and nothing was warned of
  friend bool operator==(const IterationState&, const IterationState&) = default;
};

// Where a rank writes what it did; null members record nothing.
struct Recording {
  std::vector<Slice>* slices = nullptr;
  std::vector<MemorySample>* memory = nullptr;
  const SliceLabels* labels = nullptr;
};

class Rank {
 public:
  // `ranks`: those that this one stands for. Everything referred to must outlive it.
  Rank(std::uint32_t index, std::vector<RankId> ranks, int local_rank,
       const program::Program& program, const Costs& costs, const Machine& machine,
       const Recording& recording, bool may_skip_iterations);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Goes on until something stops it. An op that others could see is done only while the own turn
  // is before `horizon`.
  Stop run(const Turn& horizon);

  const program::Op& op() const { return program_->ops[next_op_]; }
  void step_over() {
    ++next_op_;
    ++issued_;
  }
  Turn turn() const { return {host_now_, issued_, index_}; }
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

  const std::vector<RankId>& ranks() const { return ranks_; }
  const program::Program& program() const { return *program_; }
  const Costs& costs() const { return *costs_; }
  Streams& streams() { return streams_; }
  std::string phase_name() const { return phases_.name(*program_); }
  std::string scope_name(ScopeId scope) const;

  // Closes the last phase and hands the record out.
  RankRecord close(std::uint32_t program);

 private:
  struct Tensor {
    memory::BlockId block;
    std::uint16_t used_on = 0;  // a bit per StreamRole: record_stream
    bool dangling = false;      // its warn-and-go-on allocation failed
  };
  struct LoopFrame {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t left = 0;  // iterations after this one
    IterationStart start;
    IterationState last;
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

  Stop wait_for(const Mark& mark);
  Stop wait_for_device();
  Stop finish();
  bool behind() const { return turn() > horizon_; }

  // rank_loops.cpp
  void end_iteration();
  IterationStart start_iteration() const;
  IterationState state_since(const IterationStart& start) const;
  std::uint64_t hash_memory() const;
  void skip_iterations(std::uint32_t count, const IterationStart& start);

  Label label(SliceKind kind, std::uint32_t text, ScopeId scope) const;
  void host_slice(SliceKind kind, Instant begin, std::uint32_t text, ScopeId scope);

  std::uint32_t index_;
  std::vector<RankId> ranks_;
  int local_rank_;
  const program::Program* program_;
  const Costs* costs_;
  const Machine* machine_;
  Recording recording_;
  bool may_skip_iterations_;
  Turn horizon_{};

  Instant host_now_{};
  std::uint32_t next_op_ = 0;
  std::uint32_t loop_end_;  // of the innermost loop, or the end of the program
  std::uint64_t issued_ = 0;
  std::int64_t launches_ = 0;
  std::vector<LoopFrame> loops_;

  bool waiting_ = false, finished_ = false, drained_ = false;
  Mark host_waits_for_[kStreamRoles];
  int host_waits_ = 0;
  Duration owed_{};  // host time to spend once the wait is over

  Streams streams_;
  std::vector<Mark> events_;
  memory::DeviceMemory device_;
  memory::ModelDriver driver_;
  memory::CachingAllocator allocator_;
  PendingFrees pending_;
  IdVector<program::TensorId, Tensor> tensors_;
  IdVector<program::ExternalId, std::uint8_t> externals_;
  IdVector<program::HostBufferId, std::uint8_t> host_buffers_;

  PhaseLog phases_;
  std::vector<WarningRecord> warnings_;
  std::vector<std::uint32_t> failed_allocs_;
  std::optional<Verdict> failure_;
};

}  // namespace sim::engine
