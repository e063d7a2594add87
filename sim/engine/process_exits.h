// How each process ends, as the launcher prints it (torchrun: torch/distributed/elastic).
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/rank.h"
#include "sim/engine/rank_classes.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// By rank: 0 for those that had finished, 1 for the one whose exception ended the job, the kernel's
// or the watchdog's signal for those it hit; the launcher ends all others with SIGTERM.
std::vector<ProcessExit> exits_of(const Verdict& verdict, const RankClasses& classes,
                                  const std::vector<std::unique_ptr<Rank>>& ranks);

}  // namespace sim::engine
