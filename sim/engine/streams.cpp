#include "sim/engine/streams.h"

#include <algorithm>

#include "sim/base/check.h"

namespace sim::engine {

Mark Streams::record(StreamRole role) {
  Stream& stream = at(role);
  if (stream.queue.empty()) return {stream.free, {}};
  const TicketId ticket{static_cast<std::uint32_t>(tickets_.size())};
  tickets_.push_back(kUnknown);
  stream.queue.push_back({Item::event_record, {}, ticket.value, {}, {}, {}});
  return {{}, ticket};
}

void Streams::wait(StreamRole role, const Mark& mark) {
  Stream& stream = at(role);
  if (stream.queue.empty() && known(mark)) {
    stream.free = std::max(stream.free, when(mark));
    return;
  }
  const bool later = !known(mark);
  stream.queue.push_back({Item::event_wait,
                          {},
                          later ? mark.ticket.value : TicketId::kNone,
                          later ? Instant{} : when(mark),
                          {},
                          {}});
}

void Streams::enter(StreamRole role, Instant issued, std::uint32_t call, const Label& label) {
  Stream& stream = at(role);
  ++stream.issued;
  stream.queue.push_back({Item::collective, label, call, issued, {}, {}});
  drain(stream, role);
}

void Streams::finish(StreamRole role, Instant begin, Instant end) {
  Stream& stream = at(role);
  CHECK(stream.arrived, "a collective ends only where it is at the head of its stream");
  const Item& item = stream.queue[stream.first];
  if (slices_ != nullptr) {
    const Instant ready = std::max(stream.free, item.at);
    if (ready < begin) {
      add_slice(role, ready, begin, {SliceKind::wait, item.label.scope, item.label.text});
    }
    add_slice(role, begin, end, item.label);
  }
  end_work(stream, end);
  if (item.ended.valid()) tickets_[item.ended.value] = end;
  stream.arrived = false;
  ++stream.first;
  settle();
}

bool Streams::all_timed() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return stream.queue.empty(); });
}

// Ends ascend, so those still to come are the last ones.
void Streams::hash_rest(Instant now, Hash& hash) const {
  for (const Stream& stream : streams_) {
    hash.add(std::max(stream.free - now, Duration{}).count());
    const std::uint64_t held = std::min(stream.timed, kLaunchQueue);
    for (std::uint64_t i = 1; i <= held; ++i) {
      const Instant end = stream.ends[(stream.timed - i) % kLaunchQueue];
      if (end <= now) break;
      hash.add((end - now).count());
    }
  }
}

void Streams::shift(Instant now, Duration by) {
  for (Stream& stream : streams_) {
    if (stream.free > now) stream.free = saturating_add(stream.free, by);
    for (Instant& end : stream.ends) {
      if (end > now) end = saturating_add(end, by);
    }
  }
}

// The end of the `number`-th work of a stream, which is not timed yet.
Mark Streams::end_of(Stream& stream, std::uint64_t number) {
  std::uint64_t next = stream.timed;
  for (std::size_t i = stream.first; i < stream.queue.size(); ++i) {
    Item& item = stream.queue[i];
    if (item.kind != Item::work && item.kind != Item::collective) continue;
    if (next++ != number) continue;
    if (!item.ended.valid()) {
      item.ended = TicketId{static_cast<std::uint32_t>(tickets_.size())};
      tickets_.push_back(kUnknown);
    }
    return {{}, item.ended};
  }
  CHECK(false, "work that is issued and not timed waits in its stream's queue");
  return {};
}

void Streams::add_slice(StreamRole role, Instant begin, Instant end, const Label& label) {
  slices_->push_back({rank_, role, false, label.kind, begin, end, label.scope, label.text});
}

// Times what can be timed from the head on; true if anything moved.
bool Streams::drain(Stream& stream, StreamRole role) {
  const std::size_t before = stream.first;
  while (stream.first < stream.queue.size()) {
    const Item& item = stream.queue[stream.first];
    if (item.kind == Item::work) {
      time(stream, role, item.at, item.duration, item.label);
      if (item.ended.valid()) tickets_[item.ended.value] = stream.free;
    } else if (item.kind == Item::event_record) {
      tickets_[item.id] = stream.free;
    } else if (item.kind == Item::event_wait) {
      const Mark mark{item.at, TicketId{item.id}};
      if (!known(mark)) break;
      stream.free = std::max(stream.free, when(mark));
    } else {
      if (!stream.arrived) {
        arrivals_.push_back({role, item.id, std::max(stream.free, item.at)});
        stream.arrived = true;
      }
      break;
    }
    ++stream.first;
  }
  const bool moved = stream.first != before;
  if (stream.first == stream.queue.size()) {
    stream.queue.clear();
    stream.first = 0;
  }
  return moved;
}

// One stream's progress can be what another waits for.
void Streams::settle() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (int role = 0; role < kStreamRoles; ++role) {
      Stream& stream = streams_[static_cast<std::size_t>(role)];
      if (!stream.queue.empty() && drain(stream, static_cast<StreamRole>(role))) moved = true;
    }
  }
}

}  // namespace sim::engine
