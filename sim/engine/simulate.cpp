#include "sim/engine/simulate.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/costs.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/hang_verdict.h"
#include "sim/engine/hosts.h"
#include "sim/engine/process_exits.h"
#include "sim/engine/rank.h"
#include "sim/engine/rank_classes.h"
#include "sim/engine/rendezvous.h"
#include "sim/engine/slice_labels.h"

namespace sim::engine {

namespace {

class Simulation {
 public:
  Simulation(const program::Workload& workload, const Machine& machine,
             const SimulateOptions& options);
  Timeline run();

 private:
  void advance(std::uint32_t index);
  void enter_collective(std::uint32_t index);
  void hold_meetings(std::uint32_t index);
  void begin_phase(std::uint32_t index);
  bool change_host_memory(std::uint32_t index);

  const program::Workload* workload_;
  RankClasses classes_;
  Timeline timeline_;
  std::vector<Costs> costs_;         // by program
  std::vector<SliceLabels> labels_;  // by program; empty where slices are not recorded
  Rendezvous rendezvous_;
  Hosts hosts_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // by class
  EventQueue queue_;
  std::vector<std::uint32_t> moved_;  // ranks whose streams may have arrivals
  bool ended_ = false;
};

Simulation::Simulation(const program::Workload& workload, const Machine& machine,
                       const SimulateOptions& options)
    : workload_(&workload),
      classes_(fold_ranks(workload, options.fold_ranks)),
      rendezvous_(workload, classes_),
      hosts_(machine, classes_) {
  for (const program::Program& program : workload.programs) {
    costs_.push_back(make_costs(program, workload, machine));
  }
  if (options.record_slices) labels_ = make_slice_labels(workload, timeline_);
  const bool may_skip =
      classes_.ranks.size() == 1 && !options.record_slices && !options.record_memory;
  for (std::uint32_t c = 0; c < classes_.ranks.size(); ++c) {
    const RankId first = classes_.ranks[c].front();
    const std::uint32_t program = workload.program_of[first];
    Recording recording;
    if (options.record_slices) recording = {&timeline_.slices, nullptr, &labels_[program]};
    if (options.record_memory) recording.memory = &timeline_.memory;
    ranks_.push_back(std::make_unique<Rank>(c, classes_.ranks[c], hosts_.local_rank(first),
                                            workload.programs[program], costs_[program], machine,
                                            recording, may_skip));
    queue_.push(ranks_.back()->turn());
  }
}

Timeline Simulation::run() {
  while (!queue_.empty() && !ended_) advance(queue_.pop().rank);
  if (!ended_) {
    for (const auto& rank : ranks_) {
      if (rank->finished()) continue;
      timeline_.verdict = explain_hang(rendezvous_, classes_, ranks_, *workload_);
      break;
    }
  }
  timeline_.processes = exits_of(timeline_.verdict, classes_, ranks_);
  timeline_.hosts = hosts_.close();
  for (const auto& rank : ranks_) {
    timeline_.ranks.push_back(rank->close(workload_->program_of[rank->ranks().front()]));
  }
  return std::move(timeline_);
}

// Lets one rank go on until it is another's turn.
void Simulation::advance(std::uint32_t index) {
  Rank& rank = *ranks_[index];
  for (;;) {
    switch (rank.run(queue_.next())) {
      case Stop::none:
        break;
      case Stop::yield:
        queue_.push(rank.turn());
        return;
      case Stop::waits:
      case Stop::finished:
        return;
      case Stop::failed:
        timeline_.verdict = *rank.failure();
        ended_ = true;
        return;
      case Stop::collective:
        enter_collective(index);
        break;
      case Stop::host_memory:
        if (!change_host_memory(index)) {
          ended_ = true;
          return;
        }
        break;
      case Stop::phase:
        begin_phase(index);
        break;
    }
  }
}

void Simulation::enter_collective(std::uint32_t index) {
  Rank& rank = *ranks_[index];
  const auto id = std::get<program::Collective>(rank.op().body).call;
  const program::CollectiveCall& call = rank.program().collectives[id];
  const ScopeId scope = call.scope.valid() ? call.scope : rank.op().scope;
  const std::uint32_t meeting =
      rendezvous_.issue(index, call, scope, rank.now(), rank.costs().collectives[id]);
  rank.enter(meeting, id);
  rank.step_over();
  hold_meetings(index);
}

// Holds every collective that has all its members, starting from what `index` has just enqueued:
// one that ends can bring other streams to the next.
void Simulation::hold_meetings(std::uint32_t index) {
  moved_.push_back(index);
  while (!moved_.empty()) {
    const std::uint32_t who = moved_.back();
    moved_.pop_back();
    auto& arrivals = ranks_[who]->streams().arrivals();
    while (!arrivals.empty()) {
      const Streams::Arrival arrival = arrivals.front();
      arrivals.erase(arrivals.begin());
      if (!rendezvous_.arrive(arrival.call, who, arrival.role, arrival.ready)) continue;
      const Rendezvous::Meeting& meeting = rendezvous_[arrival.call];
      for (const Rendezvous::Entrant& entrant : meeting.entrants) {
        ranks_[entrant.rank_class]->streams().finish(entrant.role, meeting.ready,
                                                     meeting.ready + meeting.duration);
        if (entrant.rank_class != who) moved_.push_back(entrant.rank_class);
      }
      rendezvous_.close(arrival.call);
    }
    if (ranks_[who]->wake()) queue_.push(ranks_[who]->turn());
  }
}

void Simulation::begin_phase(std::uint32_t index) {
  Rank& rank = *ranks_[index];
  const auto phase = std::get<program::BeginPhase>(rank.op().body).phase;
  rank.begin_phase(phase);
  hosts_.begin_phase(index, rank.program().phases[phase]);
  rank.step_over();
}

// The op at hand is a HostAlloc or HostFree; false if the kernel had to kill a process.
bool Simulation::change_host_memory(std::uint32_t index) {
  Rank& rank = *ranks_[index];
  const auto* alloc = std::get_if<program::HostAlloc>(&rank.op().body);
  const auto id =
      alloc != nullptr ? alloc->buffer : std::get<program::HostFree>(rank.op().body).buffer;
  const program::HostBuffer& buffer = rank.program().host_buffers[id];
  const ScopeId scope = buffer.scope.valid() ? buffer.scope : rank.op().scope;
  if (rank.exchange_buffer(id, alloc != nullptr)) {
    hosts_.free(index, buffer.kind, buffer.bytes);
    rank.hold_on_host(buffer.kind, -buffer.bytes);
  }
  if (alloc != nullptr) {
    const auto kill = hosts_.allocate(index, buffer.kind, buffer.bytes);
    if (kill) {
      timeline_.verdict = HostOutOfMemory{
          kill->host,
          kill->victim,
          rank.phase_name(),
          rank.scope_name(scope),
          fmt::format("Signal 9 (SIGKILL) received by PID of local rank {}", kill->local_rank),
          buffer.bytes,
          kill->capacity,
          kill->used,
          rank.now()};
      return false;
    }
    rank.hold_on_host(buffer.kind, buffer.bytes);
  }
  rank.step_over();
  return true;
}

}  // namespace

Timeline simulate(const program::Workload& workload, const Machine& machine,
                  const SimulateOptions& options) {
  return Simulation(workload, machine, options).run();
}

}  // namespace sim::engine
