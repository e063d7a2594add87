// What to say of a job in which no rank can go on.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/rank.h"
#include "sim/engine/rank_classes.h"
#include "sim/engine/rendezvous.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// `ranks` by class. Names the collective that was the first to have everyone who will come.
Hang explain_hang(const Rendezvous& rendezvous, const RankClasses& classes,
                  const std::vector<std::unique_ptr<Rank>>& ranks,
                  const program::Workload& workload);

}  // namespace sim::engine
