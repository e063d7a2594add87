// Loops of a program, and the iterations that need not be run.
//
// What an iteration does depends on where it finds everything: the blocks of the allocator and the
// tensors in them, busy streams, events and pending frees, seen from the host's clock. Where an
// iteration leaves all of that as an earlier one left it, those between repeat for the rest of the
// loop, and skipping them only moves the clocks and counters. So a loop whose host waits for the
// device somewhere settles after a few iterations; one whose host runs further and further ahead
// never does and is run to its end. Only while one simulated rank makes up the whole job.
#include <algorithm>
#include <utility>

#include "sim/base/hash.h"
#include "sim/engine/rank.h"

namespace sim::engine {

Stop Rank::exec(const program::Loop& body, const program::Op&) {
  const std::uint32_t begin = next_op_ + 1;
  const std::uint32_t length = std::min(body.ops, loop_end_ - begin);
  if (body.times == 0 || length == 0) {
    next_op_ += length;
    return Stop::none;
  }
  loops_.push_back({begin, begin + length, body.times - 1, 1, {}});
  loop_end_ = begin + length;
  return Stop::none;
}

void Rank::end_iteration() {
  LoopFrame& frame = loops_.back();
  if (frame.left > 0 && self_.may_skip_iterations && streams_.all_timed()) skip_repeats(frame);
  if (frame.left > 0) {
    --frame.left;
    ++frame.iteration;
    next_op_ = frame.begin;
    return;
  }
  loops_.pop_back();
  loop_end_ = loops_.empty() ? self_.program_end : loops_.back().end;
}

// Compares with an earlier iteration, mostly the last one; that one is kept the longer the more
// there were, so that a longer period is found too (after Brent, BIT 20, 1980).
void Rank::skip_repeats(LoopFrame& frame) {
  pending_.close(streams_);
  LoopState now = loop_state(frame.iteration);
  if (!frame.known) {
    frame.known = std::move(now);
    return;
  }
  const LoopState& known = *frame.known;
  const std::uint64_t period = frame.iteration - known.iteration;
  const bool phases_alike = now.phases_ended == known.phases_ended ||
                            (now.phase == known.phase && now.open == known.open);
  if (now.fingerprint == known.fingerprint && now.caught == known.caught && phases_alike) {
    const auto times = static_cast<std::uint32_t>(frame.left / period);
    if (times > 0) repeat_since(known, times);
    frame.left -= static_cast<std::uint32_t>(times * period);
  } else if (period > frame.iteration / 8) {
    frame.known = std::move(now);
  }
}

Rank::LoopState Rank::loop_state(std::uint64_t iteration) const {
  LoopState state;
  state.fingerprint = fingerprint();
  state.phase = phases_.current();
  state.open = phases_.open_since(host_now_);
  state.iteration = iteration;
  state.at = host_now_;
  state.launches = launches_;
  state.retries = phases_.retries();
  state.issued = issued_;
  state.phases_ended = phases_.ended();
  state.caught = caught_.size();
  return state;
}

std::uint64_t Rank::fingerprint() const {
  Hash hash;
  streams_.hash_rest(host_now_, hash);
  for (std::size_t event = 0; event < events_.size(); ++event) {
    const Instant when = streams_.when(events_[event]);
    if (when > host_now_) hash.add(event).add((when - host_now_).count());
  }
  pending_.hash_rest(host_now_, memory_.allocator, hash);
  hash.add(memory_.allocator.fingerprint()).add(memory_.driver.high_water());
  hash.add(memory_.device.used().count);
  for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[program::TensorId{i}];
    if (!tensor.block.valid() && !tensor.dangling) continue;
    hash.add(i).add(tensor.used_on).add(tensor.dangling);
    if (tensor.block.valid()) hash.add(memory_.allocator.address(tensor.block));
  }
  for (const std::uint8_t held : externals_) hash.add(held);
  for (const std::uint8_t held : host_buffers_) hash.add(held);
  return hash.value();
}

// All that has happened since `before` happens `times` times more. What is in the past stays there;
// what is still to come moves along.
void Rank::repeat_since(const LoopState& before, std::int64_t times) {
  const Duration period = host_now_ - before.at;
  const Duration by = saturating_multiply(period, times);
  phases_.repeat(before.phases_ended, before.retries, times, period);
  if (self_.recording.slices != nullptr) cut_slices(by);
  if (self_.recording.repeats != nullptr && period > Duration{}) {
    self_.recording.repeats->push_back({ranks().front(), before.at, host_now_, times});
  }
  streams_.shift(host_now_, by);
  pending_.shift(host_now_, by);
  for (Mark& event : events_) {
    const Instant when = streams_.when(event);
    if (when > host_now_) event = {saturating_add(when, by), {}};
  }
  const auto more = [&](std::int64_t once) { return saturating_multiply(once, times); };
  launches_ = saturating_add(launches_, more(launches_ - before.launches));
  issued_ += (issued_ - before.issued) * static_cast<std::uint64_t>(times);
  spend(by);
}

// The slices beyond now move on by `by`; those across are cut in two. A stream's slices
// stay in the order of their begins.
void Rank::cut_slices(Duration by) {
  std::vector<Slice> cut;
  cut.reserve(self_.recording.slices->size());
  for (const Slice& slice : *self_.recording.slices) {
    if (slice.end <= host_now_) {
      cut.push_back(slice);
      continue;
    }
    Slice past = slice, rest = slice;
    past.end = host_now_;
    rest.begin = saturating_add(std::max(slice.begin, host_now_), by);
    rest.end = saturating_add(slice.end, by);
    if (slice.begin < host_now_) cut.push_back(past);
    cut.push_back(rest);
  }
  *self_.recording.slices = std::move(cut);
}

}  // namespace sim::engine
