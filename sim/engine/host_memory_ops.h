// HostAlloc and HostFree: the ops that other processes of a host can feel.
#pragma once

#include <optional>

#include "sim/engine/hosts.h"
#include "sim/engine/rank.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

// Does the op at hand of `rank`, whose class is `rank_class`; set if the kernel had to kill a
// process.
std::optional<HostOutOfMemory> change_host_memory(Rank& rank, std::uint32_t rank_class,
                                                  Hosts& hosts);

}  // namespace sim::engine
