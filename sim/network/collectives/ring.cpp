// Rings: each member sends to the next, n - 1 rounds for a gather, a scatter or a broadcast, twice
// as many for an all-reduce. Every byte but a member's own crosses every hop once per pass, so the
// slowest hop sets the pace.
#include <algorithm>

#include "sim/network/collectives/algorithms.h"
#include "sim/network/collectives/group_shape.h"

namespace sim::network {

namespace {

bool supports(CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }

ByteRate pace_of(const GroupShape& shape) {
  if (shape.hosts == 1) return shape.inside;
  if (shape.members_per_host == 1) return shape.between;
  return std::min(shape.inside, shape.between);
}

Duration time(const CollectiveRequest& request, const Topology& topology) {
  const GroupShape shape = shape_of(request, topology);
  const int n = shape.members;
  const int hops_between = shape.hosts > 1 ? shape.hosts : 0;
  const bool twice =
      request.kind == CollectiveKind::all_reduce || request.kind == CollectiveKind::barrier;
  const int passes = twice ? 2 : 1;
  // One pass goes round but for one hop.
  const Duration latency =
      shape.between_hop * hops_between + shape.inside_hop * std::max(n - 1 - hops_between, 0);
  const double part = request.kind == CollectiveKind::broadcast ? 1 : all_but_own(n);
  const ByteRate pace = pace_of(shape);
  Duration moving{};
  if (request.bytes.count > 0 && pace.per_second > 0) moving = request.bytes / (pace / part);
  return kRingStart + (latency + moving) * passes;
}

}  // namespace

const CollectiveAlgorithm kRing{"ring", "each member sends to the next", supports, time};

}  // namespace sim::network
