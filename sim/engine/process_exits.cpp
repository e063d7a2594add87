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

}  // namespace

std::vector<ProcessExit> exits_of(const Verdict& verdict, const RankClasses& classes,
                                  const std::vector<std::unique_ptr<Rank>>& ranks) {
  std::vector<ProcessExit> exits;
  for (RankId rank{0}; rank.value < classes.class_of.size(); ++rank.value) {
    const auto own = std::visit(OwnEnd{rank}, verdict);
    if (own) {
      exits.push_back(*own);
    } else if (ranks[classes.class_of[rank]]->finished()) {
      exits.push_back({rank, 0, ""});
    } else {
      exits.push_back({rank, -15, "SIGTERM"});
    }
  }
  return exits;
}

}  // namespace sim::engine
