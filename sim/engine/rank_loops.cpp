// Loops of a program, and the iterations that need not be run.
//
// An iteration that took as long as the one before it and left everything where that one left it
// (each block of the allocator, the tensors in them, busy streams, events and pending frees, seen
// from the host's clock) repeats itself: the remaining ones only move the clocks. So a loop whose
// host waits for the device somewhere settles after a few iterations; one whose host runs further
// and further ahead never does and is run to its end. Only where one rank class makes up the whole
// job and nothing is recorded step by step. (The ages that garbage collection goes by are not
// compared.)
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
  IterationState state;
  state.step = host_now_ - start.at;
  const auto add_wait = [&](Instant until) {
    state.waits.push_back(std::max(until - host_now_, Duration{}));
  };
  for (int role = 0; role < kStreamRoles; ++role) {
    add_wait(streams_.free_at(static_cast<StreamRole>(role)));
  }
  for (const Mark& event : events_) add_wait(streams_.when(event));
  pending_.append_waits(host_now_, state.waits);
  state.memory = hash_memory();
  state.device_used = device_.used();
  state.host_anonymous = phases_.host_anonymous();
  state.host_pinned = phases_.host_pinned();
  state.retries = allocator_.stats().num_alloc_retries;
  state.silent = phases_.size() + warnings_.size() == start.records;
  return state;
}

std::uint64_t Rank::hash_memory() const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  };
  for (const memory::SegmentView& segment : allocator_.snapshot()) {
    mix(segment.address);
    mix(segment.stream);
    for (const auto& block : segment.blocks) {
      mix(static_cast<std::uint64_t>(block.size.count) * 4 + (block.allocated ? 1 : 0) +
          (block.active ? 2 : 0));
    }
  }
  for (const Tensor& tensor : tensors_) {
    mix(tensor.block.valid() ? allocator_.address(tensor.block) : tensor.dangling ? 1 : 0);
    mix(tensor.used_on);
  }
  return hash;
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
