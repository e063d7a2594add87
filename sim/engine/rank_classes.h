// Which ranks are simulated as one.
#pragma once

#include <vector>

#include "sim/base/ids.h"
#include "sim/program/program.h"

namespace sim::engine {

// Ranks that run the same program and belong to the same ones of the groups it names do the same at
// the same time, since all cards and hosts are alike. With `fold` false every rank is a class.
struct RankClasses {
  std::vector<std::vector<RankId>> ranks;    // by class, ascending; classes by their first rank
  IdVector<RankId, std::uint32_t> class_of;  // by rank

  // The number of one more, which stands for all ranks while all classes do the same.
  std::uint32_t everyone() const { return static_cast<std::uint32_t>(ranks.size()); }
};

RankClasses fold_ranks(const program::Workload& workload, bool fold);

}  // namespace sim::engine
