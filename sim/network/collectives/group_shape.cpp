#include "sim/network/collectives/group_shape.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace sim::network {

namespace {

// Of a link's nominal rate, what moves at large sizes.
constexpr double kNvlink = 0.776;  // 232.8 of 300 GB/s bus bandwidth: nccl-tests, 8 A100, NVSwitch
constexpr double kPcieToNic = 0.81;   // 26 of 32 GB/s: superbench-results, pinned copies
constexpr double kPcieToPeer = 0.63;  // 20 of 32 GB/s: NVIDIA/nccl-tests issue 178, 3 GPUs on PCIe
constexpr double kNic = 0.95;         // 23.8 of 25 GB/s: superbench-results, ib_write over HDR200

ByteRate achieved(const Link& link, double pcie) {
  switch (link.kind) {
    case LinkKind::nvlink:
      return link.bandwidth * kNvlink;
    case LinkKind::pcie:
      return link.bandwidth * pcie;
    case LinkKind::network:
      return link.bandwidth * kNic;
  }
  return link.bandwidth;
}

struct Pace {
  ByteRate rate;
  Duration hop{};
};

// All members of one node send to their neighbours at once, around a ring: the slowest link, shared
// by the hops that cross it, sets the pace.
Pace around(const std::vector<Place>& ring, const Topology& topology) {
  std::map<LinkId, int> crossings;
  Pace pace;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const VertexId from = topology.gpu(ring[i]);
    const VertexId to = topology.gpu(ring[(i + 1) % ring.size()]);
    Duration hop{};
    for (const LinkId id : topology.route(from, to)) {
      ++crossings[id];
      hop += topology.links()[id].latency;
    }
    pace.hop = std::max(pace.hop, hop);
  }
  for (const auto& [id, count] : crossings) {
    const Link& link = topology.links()[id];
    const ByteRate rate = achieved(link, kPcieToPeer) / count;
    if (pace.rate.per_second == 0 || rate < pace.rate) pace.rate = rate;
  }
  return pace;
}

// Out of a node by as many NICs as it has, but not more than it has members: NCCL lets each member
// use the NIC nearest to it.
Pace out_of(const std::vector<Place>& here, Place there, const Topology& topology) {
  Pace pace;
  double nic = 0;
  for (const LinkId id : topology.route(topology.gpu(here.front()), topology.gpu(there))) {
    const Link& link = topology.links()[id];
    pace.hop += link.latency;
    const double rate = achieved(link, kPcieToNic).per_second;
    nic = nic == 0 ? rate : std::min(nic, rate);
  }
  const int used = std::min(topology.nics_per_host(), static_cast<int>(here.size()));
  pace.rate = ByteRate{nic * std::max(used, 1)};
  return pace;
}

}  // namespace

GroupShape shape_of(const CollectiveRequest& request, const Topology& topology) {
  std::map<std::uint32_t, std::vector<Place>> by_host;
  for (const Place& place : request.places) by_host[place.host].push_back(place);
  GroupShape shape;
  shape.members = static_cast<int>(request.places.size());
  shape.hosts = static_cast<int>(by_host.size());
  // Nodes are alike: the routes of the fullest one stand for all.
  const std::vector<Place>* fullest = nullptr;
  for (const auto& [host, places] : by_host) {
    if (fullest == nullptr || places.size() > fullest->size()) fullest = &places;
  }
  if (fullest == nullptr) return shape;
  shape.members_per_host = static_cast<int>(fullest->size());
  if (fullest->size() > 1) {
    const Pace pace = around(*fullest, topology);
    shape.inside = pace.rate;
    shape.inside_hop = pace.hop;
  }
  if (shape.hosts > 1) {
    const auto& other = by_host.begin()->second == *fullest ? std::next(by_host.begin())->second
                                                            : by_host.begin()->second;
    const Pace pace = out_of(*fullest, other.front(), topology);
    shape.between = pace.rate;
    shape.between_hop = pace.hop;
  }
  return shape;
}

}  // namespace sim::network
