// Trees: up to the root and down again, inside a node along a chain. Two trees that use opposite
// leaves carry half of the data each (NCCL's double binary tree), so an all-reduce moves its buffer
// twice whatever the number of members, in a logarithm of the nodes' hops.
#include <algorithm>
#include <bit>

#include "sim/network/collectives/algorithms.h"
#include "sim/network/collectives/group_shape.h"

namespace sim::network {

namespace {

bool supports(CollectiveKind kind) { return kind == CollectiveKind::all_reduce; }

// A hop between nodes takes a tree 5.0 us where it takes a ring 2.7 us: it sums what its two
// children send (NCCL's src/graph/tuning.cc, hwLat, LL over the network).
constexpr double kNetworkHopOverRing = 5.0 / 2.7;

Duration time(const CollectiveRequest& request, const Topology& topology) {
  const GroupShape shape = shape_of(request, topology);
  const auto levels = static_cast<int>(std::bit_width(static_cast<unsigned>(shape.hosts - 1)));
  const Duration hop = from_seconds(to_seconds(shape.between_hop) * kNetworkHopOverRing);
  const Duration latency = shape.inside_hop * (shape.members_per_host - 1) + hop * levels;
  Duration moving{};
  if (shape.inside.per_second > 0) moving = request.bytes / shape.inside;
  if (shape.between.per_second > 0) moving = std::max(moving, request.bytes / shape.between);
  return kTreeStart + (latency + moving) * 2;
}

}  // namespace

const CollectiveAlgorithm kTree{"tree", "up a tree of nodes and down again", supports, time};

}  // namespace sim::network
