#include "sim/network/collective_timer.h"

#include <algorithm>

namespace sim::network {

CollectiveTimer::CollectiveTimer(const Topology& topology) : topology_(&topology) {}

Duration CollectiveTimer::time(const CollectiveRequest& request) const {
  if (request.places.size() < 2) return Duration{};
  Duration best = Duration::max();
  for (const CollectiveAlgorithm* algorithm : collective_catalog().entries()) {
    if (!algorithm->supports(request.kind)) continue;
    best = std::min(best, algorithm->time(request, *topology_));
  }
  return best;
}

Duration CollectiveTimer::transfer(Bytes bytes, VertexId from, VertexId to) const {
  Duration latency{};
  ByteRate narrowest;
  for (const LinkId id : topology_->route(from, to)) {
    const Link& link = topology_->links()[id];
    latency += link.latency;
    if (narrowest.per_second == 0 || link.bandwidth < narrowest) narrowest = link.bandwidth;
  }
  if (bytes.count == 0 || narrowest.per_second == 0) return latency;
  return latency + bytes / narrowest;
}

}  // namespace sim::network
