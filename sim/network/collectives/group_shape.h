// What an algorithm needs to know of a group's place in the cluster: how many members on how many
// nodes, how fast its members send to one another inside a node and between nodes, and what one hop
// costs.
#pragma once

#include "sim/network/collective_timer.h"

namespace sim::network {

struct GroupShape {
  int members = 0;
  int hosts = 0;
  int members_per_host = 0;  // of the fullest node
  ByteRate inside;   // every member to its neighbour at once; 0 where no node has two members
  ByteRate between;  // out of one node, all its NICs together; 0 where all are on one node
  Duration inside_hop{}, between_hop{};
};

GroupShape shape_of(const CollectiveRequest& request, const Topology& topology);

// What moves between members of `n` in all algorithms, as part of CollectiveRequest::bytes.
inline double all_but_own(int n) { return static_cast<double>(n - 1) / n; }

// Time before the first byte of a small message moves: NCCL's tuning table (src/graph/tuning.cc,
// baseLat of the LL protocol, 6.6 us for rings and 6.8 us for trees).
inline constexpr Duration kRingStart = 6600_ns;
inline constexpr Duration kTreeStart = 6800_ns;

}  // namespace sim::network
