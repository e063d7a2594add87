#include "sim/program/libraries/facts.h"

namespace sim::program {

const Library kNccl{"nccl", "collective communication: device memory of its communicators",
                    "2.27.0", nullptr};

// Measured, not derived: NCCL allocates per channel and peer. A100 with NVLink: 544 MiB for two
// ranks, 688 MiB for three or more (NVIDIA/nccl issue 964). H200, two ranks: 882,900,992 bytes grew
// with the first all_reduce (overhead.world2.rank0.csv of our own recordings). The maintainers:
// linear in channels, not in ranks beyond two nodes (issues 864, 986).
Bytes communicator_memory(int compute_capability, std::int64_t ranks) {
  if (ranks < 2) return Bytes{0};
  if (compute_capability >= 90) return Bytes{882'900'992};
  return ranks == 2 ? 544_MiB : 688_MiB;
}

}  // namespace sim::program
