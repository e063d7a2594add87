// Loops of a program, and the iterations that need not be run.
//
// An iteration that leaves the allocator's counters, the busy streams and the pending frees as the
// one before it left them, and took as long, is taken to repeat itself: the remaining ones only
// move the clocks. Peaks, warnings and counts are then those of the whole loop, as long as the free
// blocks lie alike too, which the counters say only in sum. Only where one rank class makes up the
// whole job and nothing is recorded step by step.
#include <algorithm>

#include "sim/engine/rank.h"

namespace sim::engine {

Stop Rank::exec(const program::Loop& body, const program::Op&) {
  const std::uint32_t begin = next_op_ + 1;
  const std::uint32_t length = std::min(body.ops, loop_end_ - begin);
  if (body.times == 0 || length == 0) {
    next_op_ += length;
    return Stop::none;
  }
  loops_.push_back({begin, begin + length, body.times - 1, start_iteration(), {}});
  loop_end_ = begin + length;
  return Stop::none;
}

void Rank::end_iteration() {
  LoopFrame& frame = loops_.back();
  if (frame.left > 0 && may_skip_iterations_ && streams_.all_timed()) {
    IterationState state = state_since(frame.start);
    if (state.silent && state == frame.last) {
      skip_iterations(frame.left, frame.start);
      frame.left = 0;
    }
    frame.last = std::move(state);
  }
  if (frame.left > 0) {
    --frame.left;
    next_op_ = frame.begin;
    frame.start = start_iteration();
    return;
  }
  const std::uint32_t outer = static_cast<std::uint32_t>(program_->ops.size());
  loops_.pop_back();
  loop_end_ = loops_.empty() ? outer : loops_.back().end;
}

IterationStart Rank::start_iteration() const {
  return {host_now_, launches_, issued_, phases_.size() + warnings_.size()};
}

IterationState Rank::state_since(const IterationStart& start) const {
  const memory::MemoryStats& stats = allocator_.stats();
  IterationState state;
  state.step = host_now_ - start.at;
  state.allocated = stats.allocated.current;
  state.active = stats.active.current;
  state.reserved = stats.reserved.current;
  state.inactive_split = stats.inactive_split.current;
  state.device_used = device_.used();
  state.host_anonymous = phases_.host_anonymous();
  state.host_pinned = phases_.host_pinned();
  state.segments = stats.segments.current;
  state.allocations = stats.allocations.current;
  state.retries = stats.num_alloc_retries;
  for (int role = 0; role < kStreamRoles; ++role) {
    const Duration busy = streams_.free_at(static_cast<StreamRole>(role)) - host_now_;
    state.waits.push_back(std::max(busy, Duration{}));
  }
  pending_.append_waits(host_now_, state.waits);
  state.silent = phases_.size() + warnings_.size() == start.records;
  return state;
}

// What is in the past stays there; what is still to come moves along.
void Rank::skip_iterations(std::uint32_t count, const IterationStart& start) {
  const Duration by = (host_now_ - start.at) * std::int64_t{count};
  streams_.shift(host_now_, by);
  pending_.shift(host_now_, by);
  for (Mark& event : events_) {
    if (!event.ticket.valid() && event.at > host_now_) event.at += by;
  }
  launches_ += (launches_ - start.launches) * count;
  issued_ += (issued_ - start.issued) * count;
  host_now_ += by;
}

}  // namespace sim::engine
