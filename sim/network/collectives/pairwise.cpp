// Pairwise exchange: every member sends its part to every other one directly. Parts for the own
// node go over its links, the others out of its NICs, all at the same time.
#include <algorithm>

#include "sim/network/collectives/algorithms.h"
#include "sim/network/collectives/group_shape.h"

namespace sim::network {

namespace {

bool supports(CollectiveKind kind) { return kind == CollectiveKind::all_to_all; }

Duration time(const CollectiveRequest& request, const Topology& topology) {
  const GroupShape shape = shape_of(request, topology);
  const double part = static_cast<double>(request.bytes.count) / shape.members;
  Duration moving{};
  if (shape.inside.per_second > 0) {
    const double own_node = part * (shape.members_per_host - 1);
    moving = from_seconds(own_node / shape.inside.per_second);
  }
  if (shape.between.per_second > 0) {
    const double others = part * (shape.members - shape.members_per_host);
    const double leaving = others * shape.members_per_host;
    moving = std::max(moving, from_seconds(leaving / shape.between.per_second));
  }
  return kRingStart + std::max(shape.inside_hop, shape.between_hop) + moving;
}

}  // namespace

const CollectiveAlgorithm kPairwise{"pairwise", "every member sends to every other", supports,
                                    time};

}  // namespace sim::network
