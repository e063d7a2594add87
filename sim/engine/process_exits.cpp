#include "sim/engine/process_exits.h"

#include <algorithm>

namespace sim::engine {

namespace {

// The process that the verdict itself ends; a launcher prints a signal as its negative number.
struct OwnEnd {
  RankId rank;
  std::optional<ProcessExit> operator()(const Fits&) const { return ProcessExit{rank, 0, ""}; }
  std::optional<ProcessExit> operator()(const CudaOutOfMemory& v) const { return raised(v.rank); }
  std::optional<ProcessExit> operator()(const Crashed& v) const { return raised(v.rank); }
  std::optional<ProcessExit> operator()(const HostOutOfMemory& v) const {
    if (v.rank != rank) return std::nullopt;
    return ProcessExit{rank, -9, "SIGKILL"};
  }
  // The watchdog takes the process down with an uncaught exception.
  std::optional<ProcessExit> operator()(const Hang& v) const {
    if (!std::binary_search(v.waiting.begin(), v.waiting.end(), rank)) return std::nullopt;
    return ProcessExit{rank, -6, "SIGABRT"};
  }
  std::optional<ProcessExit> raised(RankId who) const {
    if (who != rank) return std::nullopt;
    return ProcessExit{rank, 1, ""};
  }
};

// Until when a process can still have come to its own end.
struct EndOfJob {
  Instant operator()(const Fits&) const { return Instant::max(); }
  Instant operator()(const Hang&) const { return Instant::max(); }
  template <class Failure>
  Instant operator()(const Failure& failure) const {
    return failure.at;
  }
};

}  // namespace

std::vector<ProcessExit> exits_of(const Verdict& verdict, const RankClasses& classes,
                                  const std::vector<std::unique_ptr<Rank>>& ranks) {
  const Instant end = std::visit(EndOfJob{}, verdict);
  std::vector<ProcessExit> exits;
  for (RankId rank{0}; rank.value < classes.class_of.size(); ++rank.value) {
    const Rank& simulated = *ranks[classes.class_of[rank]];
    if (const auto own = std::visit(OwnEnd{rank}, verdict)) {
      exits.push_back(*own);
    } else if (simulated.finished() && simulated.now() < end) {
      exits.push_back({rank, 0, ""});
    } else {
      exits.push_back({rank, -15, "SIGTERM"});
    }
  }
  return exits;
}

}  // namespace sim::engine
