#include "sim/engine/simulate.h"

#include <memory>
#include <vector>

#include "sim/engine/common_start.h"
#include "sim/engine/costs.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/hang_verdict.h"
#include "sim/engine/host_memory_ops.h"
#include "sim/engine/hosts.h"
#include "sim/engine/process_exits.h"
#include "sim/engine/rank.h"
#include "sim/engine/rank_classes.h"
#include "sim/engine/rendezvous.h"
#include "sim/engine/slice_labels.h"

namespace sim::engine {

namespace {

template <class Record>
void copy_for(std::vector<Record>& records, const std::vector<RankId>& ranks) {
  const std::size_t before = records.size();
  records.reserve(before * (1 + ranks.size()));
  for (const RankId rank : ranks) {
    for (std::size_t i = 0; i < before; ++i) {
      records.push_back(records[i]);
      records.back().rank = rank;
    }
  }
}

// What is on record so far is true of `ranks` too.
void copy_records(Timeline& timeline, const std::vector<RankId>& ranks) {
  copy_for(timeline.slices, ranks);
  copy_for(timeline.memory, ranks);
  copy_for(timeline.allocator_events, ranks);
  copy_for(timeline.repeats, ranks);
}

class Simulation {
 public:
  Simulation(const program::Workload& workload, const Machine& machine,
             const SimulateOptions& options);
  Timeline run();

 private:
  bool skips_repeats() const { return options_.skip_repeats && !options_.record_allocator; }
  Identity identity_of(std::uint32_t rank_class);
  void start_as_one(std::uint32_t ops);
  void part();
  void start_each();
  Rank& rank(std::uint32_t index) { return start_ != nullptr ? *start_ : *ranks_[index]; }
  void advance(std::uint32_t index);
  void enter_collective(std::uint32_t index);
  void hold_meetings(std::uint32_t index);
  void begin_phase(std::uint32_t index);

  const program::Workload* workload_;
  const Machine* machine_;
  SimulateOptions options_;
  RankClasses classes_;
  Timeline timeline_;
  std::vector<Costs> costs_;         // by program
  std::vector<SliceLabels> labels_;  // by program; empty where slices are not recorded
  Rendezvous rendezvous_;
  Hosts hosts_;
  std::unique_ptr<Rank> start_;               // everyone, until they part
  std::vector<std::unique_ptr<Rank>> ranks_;  // by class, from then on
  EventQueue queue_;
  std::vector<std::uint32_t> moved_;  // ranks whose streams may have arrivals
  bool ended_ = false;
};

Simulation::Simulation(const program::Workload& workload, const Machine& machine,
                       const SimulateOptions& options)
    : workload_(&workload),
      machine_(&machine),
      options_(options),
      classes_(fold_ranks(workload, options.fold_ranks)),
      rendezvous_(workload, classes_),
      hosts_(machine, classes_) {
  for (const program::Program& program : workload.programs) {
    costs_.push_back(make_costs(program, workload, machine));
  }
  if (options.record_slices) labels_ = make_slice_labels(workload, timeline_);
  const bool shares = options.fold_ranks && classes_.ranks.size() > 1;
  if (const std::uint32_t ops = shares ? common_start(workload) : 0; ops > 0) {
    start_as_one(ops);
  } else {
    start_each();
  }
}

Identity Simulation::identity_of(std::uint32_t rank_class) {
  Identity identity;
  identity.index = rank_class;
  identity.ranks = classes_.ranks[rank_class];
  identity.local_rank = hosts_.local_rank(identity.ranks.front());
  const std::uint32_t program = workload_->program_of[identity.ranks.front()];
  identity.program = &workload_->programs[program];
  identity.program_end = static_cast<std::uint32_t>(identity.program->ops.size());
  identity.costs = &costs_[program];
  if (options_.record_slices) {
    identity.recording.slices = &timeline_.slices;
    identity.recording.labels = &labels_[program];
  }
  if (options_.record_memory) identity.recording.memory = &timeline_.memory;
  if (options_.record_allocator) identity.recording.allocator = &timeline_.allocator_events;
  identity.recording.repeats = &timeline_.repeats;
  identity.may_skip_iterations = skips_repeats() && classes_.ranks.size() == 1;
  return identity;
}

void Simulation::start_each() {
  for (std::uint32_t c = 0; c < classes_.ranks.size(); ++c) {
    ranks_.push_back(std::make_unique<Rank>(identity_of(c), *machine_));
    queue_.push(ranks_.back()->turn());
  }
}

// The first class speaks for everyone.
void Simulation::start_as_one(std::uint32_t ops) {
  Identity identity = identity_of(0);
  identity.index = classes_.everyone();
  identity.program_end = ops;
  identity.parts = true;
  identity.may_skip_iterations = skips_repeats();
  start_ = std::make_unique<Rank>(std::move(identity), *machine_);
  queue_.push(start_->turn());
}

// Every class goes on by itself from where everyone is, with its own copy of the records.
void Simulation::part() {
  for (std::uint32_t c = 0; c < classes_.ranks.size(); ++c) {
    ranks_.push_back(std::make_unique<Rank>(*start_, identity_of(c)));
    if (!ended_) queue_.push(ranks_.back()->turn());
  }
  std::vector<RankId> others;
  for (std::size_t c = 1; c < classes_.ranks.size(); ++c) {
    others.push_back(classes_.ranks[c].front());
  }
  copy_records(timeline_, others);
  rendezvous_.part();
  start_.reset();
}

Timeline Simulation::run() {
  while (!queue_.empty() && !ended_) advance(queue_.pop().rank);
  if (start_ != nullptr) part();
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
  Rank& who = rank(index);
  for (;;) {
    switch (who.run(queue_.next())) {
      case Stop::none:
        break;
      case Stop::yield:
        queue_.push(who.turn());
        return;
      case Stop::waits:
      case Stop::blocked:
      case Stop::finished:
        return;
      case Stop::parts:
        part();
        return;
      case Stop::failed:
        timeline_.verdict = *who.failure();
        ended_ = true;
        return;
      case Stop::collective:
        enter_collective(index);
        break;
      case Stop::host_memory:
        if (const auto killed = change_host_memory(who, index, hosts_)) {
          timeline_.verdict = *killed;
          ended_ = true;
          return;
        }
        who.step_over();
        break;
      case Stop::phase:
        begin_phase(index);
        break;
    }
  }
}

void Simulation::enter_collective(std::uint32_t index) {
  Rank& who = rank(index);
  const auto id = std::get<program::Collective>(who.op().body).call;
  const program::CollectiveCall& call = who.program().collectives[id];
  const ScopeId scope = call.scope.valid() ? call.scope : who.op().scope;
  const std::uint32_t meeting =
      rendezvous_.issue(index, call, scope, who.now(), who.costs().collectives[id]);
  who.enter(meeting, id);
  who.step_over();
  hold_meetings(index);
}

// Holds every collective that has all its members, starting from what `index` has just enqueued:
// one that ends can bring other streams to the next.
void Simulation::hold_meetings(std::uint32_t index) {
  moved_.push_back(index);
  while (!moved_.empty()) {
    const std::uint32_t who = moved_.back();
    moved_.pop_back();
    auto& arrivals = rank(who).streams().arrivals();
    while (!arrivals.empty()) {
      const Streams::Arrival arrival = arrivals.front();
      arrivals.erase(arrivals.begin());
      if (!rendezvous_.arrive(arrival.call, who, arrival.role, arrival.ready)) continue;
      const Rendezvous::Meeting& meeting = rendezvous_[arrival.call];
      for (const Rendezvous::Entrant& entrant : meeting.entrants) {
        rank(entrant.rank_class)
            .streams()
            .finish(entrant.role, meeting.ready, meeting.ready + meeting.duration);
        if (entrant.rank_class != who) moved_.push_back(entrant.rank_class);
      }
      rendezvous_.close(arrival.call);
    }
    if (rank(who).wake()) queue_.push(rank(who).turn());
  }
}

void Simulation::begin_phase(std::uint32_t index) {
  Rank& who = rank(index);
  const auto phase = std::get<program::BeginPhase>(who.op().body).phase;
  who.begin_phase(phase);
  hosts_.begin_phase(index, who.program().phases[phase]);
  who.step_over();
}

}  // namespace

Timeline simulate(const program::Workload& workload, const Machine& machine,
                  const SimulateOptions& options) {
  return Simulation(workload, machine, options).run();
}

}  // namespace sim::engine
