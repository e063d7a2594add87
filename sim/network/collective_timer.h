// Collective + places of its ranks -> Duration. Which algorithm and protocol NCCL takes is a
// selector's choice (selectors/); what an algorithm costs is the algorithm's file (collectives/).
#pragma once

#include <span>
#include <string_view>

#include "sim/base/catalog.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/network/topology.h"

namespace sim::network {

// `bytes`: all_gather and reduce_scatter count the full (gathered) buffer, all_reduce and broadcast
// the buffer each rank holds, all_to_all what one rank sends in total: nccl-tests' "size".
struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  std::span<const Place> places;  // one per member, in group order
};

// One way to run a collective (collectives/*.cpp; listed in collectives/catalog.cpp).
struct CollectiveAlgorithm {
  std::string_view name;  // ring, tree, pairwise
  std::string_view description;
  bool (*supports)(CollectiveKind);
  Duration (*time)(const CollectiveRequest&, const Topology&);
};
const Catalog<CollectiveAlgorithm>& collective_catalog();

class CollectiveTimer {
 public:
  explicit CollectiveTimer(const Topology& topology);  // keeps a reference
  // By the fastest algorithm that does this kind. A group of one takes no time.
  Duration time(const CollectiveRequest& request) const;
  // One transfer between two vertices, alone on its route.
  Duration transfer(Bytes bytes, VertexId from, VertexId to) const;

 private:
  const Topology* topology_;
};

}  // namespace sim::network
