// The CUDA streams of one rank: when the GPU does what the host has enqueued.
//
// Work that can be timed is timed as it is enqueued: it begins when its stream is free, but not
// before the host issued it. A collective whose other members have not come yet leaves its stream's
// future open; what follows it queues up until finish() closes the gap. A moment in a stream is
// therefore a Mark: an instant, or a ticket for one that is not known yet.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/hash.h"
#include "sim/base/ids.h"
#include "sim/base/saturating.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// Kernels and copies that a stream can hold, the running one included; the next launch blocks the
// host. Event records and waits do not count. Measured on H200 with driver 580.159
// (tests/data/h200/launch_queue.csv); "about 1000 kernels" per stream with drivers of 2018
// (forums.developer.nvidia.com/t/68937).
inline constexpr std::uint64_t kLaunchQueue = 1022;

struct TicketTag;
using TicketId = Id<TicketTag>;

struct Mark {
  Instant at{};
  TicketId ticket;  // valid: `at` is not known yet
};

// What a slice of the timeline says beside its times.
struct Label {
  SliceKind kind = SliceKind::kernel;
  ScopeId scope;
  std::uint32_t text = 0;
};

class Streams {
 public:
  // A collective at the head of a stream, ready for the other members.
  struct Arrival {
    StreamRole role;
    std::uint32_t call = 0;
    Instant ready;
  };

  // `slices`: where to write what the streams did, or null; `rank` stands in each.
  explicit Streams(RankId rank = {}, std::vector<Slice>* slices = nullptr)
      : rank_(rank), slices_(slices) {}

  // The slices that follow are those of `rank`.
  void speak_for(RankId rank) { rank_ = rank; }

  void run(StreamRole role, Instant issued, Duration duration, const Label& label) {
    Stream& stream = at(role);
    ++stream.issued;
    if (stream.queue.empty()) {
      time(stream, role, issued, duration, label);
    } else {
      stream.queue.push_back({Item::work, label, 0, issued, duration, {}});
    }
  }
  // When the stream can take one more kernel, copy or collective without blocking the host.
  Mark room(StreamRole role) {
    Stream& stream = at(role);
    if (stream.issued < kLaunchQueue) return {};
    const std::uint64_t oldest = stream.issued - kLaunchQueue;
    return oldest < stream.timed ? Mark{stream.ends[oldest % kLaunchQueue], {}}
                                 : end_of(stream, oldest);
  }
  // cudaEventRecord: the end of what the stream holds now.
  Mark record(StreamRole role);
  // cudaStreamWaitEvent.
  void wait(StreamRole role, const Mark& mark);
  // A collective; `call` is the caller's number for it. Shows up in arrivals() once all before it
  // is timed, and holds the stream until finish().
  void enter(StreamRole role, Instant issued, std::uint32_t call, const Label& label);
  // The collective at the head of `role` moves data from `begin` to `end`.
  void finish(StreamRole role, Instant begin, Instant end);

  // Collectives that became ready since the last call; the caller empties the list.
  std::vector<Arrival>& arrivals() { return arrivals_; }

  bool known(const Mark& mark) const {
    return !mark.ticket.valid() || tickets_[mark.ticket.value] != kUnknown;
  }
  // Of a known mark.
  Instant when(const Mark& mark) const {
    return mark.ticket.valid() ? tickets_[mark.ticket.value] : mark.at;
  }
  // When the stream is free of all that is timed so far.
  Instant free_at(StreamRole role) const { return streams_[static_cast<std::size_t>(role)].free; }
  bool all_timed() const;
  // All must be timed: what they still have to do after `now`, and moving that by `by`.
  void hash_rest(Instant now, Hash& hash) const;
  void shift(Instant now, Duration by);

 private:
  static constexpr Instant kUnknown = Instant::max();

  struct Item {
    enum Kind : std::uint8_t { work, event_wait, event_record, collective };
    Kind kind;
    Label label;
    std::uint32_t id;  // ticket or call
    Instant at;        // issued, or known end of the wait
    Duration duration;
    TicketId ended;  // valid: somebody waits for the end of this work or collective
  };
  struct Stream {
    Instant free{};
    std::uint64_t issued = 0, timed = 0;  // kernels, copies and collectives
    std::vector<Instant> ends;            // of the latest timed: the n-th at n % kLaunchQueue
    std::vector<Item> queue;              // in stream order; the head is at `first`
    std::size_t first = 0;
    bool arrived = false;  // the collective at the head was announced
  };

  Stream& at(StreamRole role) { return streams_[static_cast<std::size_t>(role)]; }
  void time(Stream& stream, StreamRole role, Instant issued, Duration duration,
            const Label& label) {
    const Instant begin = std::max(stream.free, issued);
    end_work(stream, saturating_add(begin, duration));
    if (slices_ != nullptr) add_slice(role, begin, stream.free, label);
  }
  void end_work(Stream& stream, Instant end) {
    stream.free = end;
    if (stream.ends.empty()) stream.ends.resize(kLaunchQueue);
    stream.ends[stream.timed++ % kLaunchQueue] = end;
  }
  Mark end_of(Stream& stream, std::uint64_t number);
  void add_slice(StreamRole role, Instant begin, Instant end, const Label& label);
  bool drain(Stream& stream, StreamRole role);
  void settle();

  RankId rank_;
  std::vector<Slice>* slices_;
  std::array<Stream, kStreamRoles> streams_;
  std::vector<Instant> tickets_;
  std::vector<Arrival> arrivals_;
};

}  // namespace sim::engine
