#include "sim/network/topology.h"

#include <algorithm>
#include <limits>

namespace sim::network {

namespace {

// Time of one hop of a small message, from NCCL's tuning table (src/graph/tuning.cc, hwLat, ring
// with the LL protocol): 0.6 us over NVLink, 1.0 us over PCIe, 2.7 us between nodes. A hop between
// two GPUs takes two links, so each link carries half; the six links between nodes (GPU, PCIe
// switch, NIC, leaf and back) share 2.7 us.
constexpr Duration kNvlinkHop = 600_ns;
constexpr Duration kPcieHop = 1000_ns;
constexpr Duration kNetworkHop = 2700_ns;
constexpr Duration kNicLink = (kNetworkHop - kPcieHop) / 2;

}  // namespace

Topology Topology::make(const ClusterSpec& cluster, Diagnostics& diagnostics) {
  Topology topology;
  const auto nodes = static_cast<std::uint32_t>(std::max<std::int64_t>(cluster.nodes.value, 1));
  topology.nics_per_host_ = cluster.node.nic.count;
  if (nodes > 1 && cluster.node.nic.count > 0) {
    topology.leaf_ = topology.vertices_.push_back({VertexKind::leaf_switch, 0, 0});
  }
  for (std::uint32_t host = 0; host < nodes; ++host) topology.add_node(cluster, host);
  topology.index_links();
  if (nodes > 1 && topology.route(topology.hosts_[0], topology.hosts_[1]).empty()) {
    diagnostics.error(cluster.nodes.at,
                      "no route between the nodes: '" + cluster.node.name + "' has no NIC");
  }
  return topology;
}

VertexId Topology::gpu(Place place) const {
  return VertexId{first_gpu_[place.host].value + place.physical_gpu};
}

VertexId Topology::host(std::uint32_t host) const { return hosts_[host]; }

void Topology::add_node(const ClusterSpec& cluster, std::uint32_t host) {
  const NodeSpec& node = cluster.node;
  const auto gpus = static_cast<std::uint32_t>(std::max(node.gpus, 1));
  const auto per_switch = static_cast<std::uint32_t>(std::max(node.gpus_per_pcie_switch, 1));
  const std::uint32_t switches = (gpus + per_switch - 1) / per_switch;
  const ByteRate pcie = node.pcie_per_gpu.per_second > 0 ? node.pcie_per_gpu : cluster.gpu.pcie;

  const VertexId root = vertices_.push_back({VertexKind::host, host, 0});
  hosts_.push_back(root);
  const VertexId first_switch = vertices_.next_id();
  for (std::uint32_t i = 0; i < switches; ++i) {
    const VertexId pcie_switch = vertices_.push_back({VertexKind::pcie_switch, host, i});
    connect(pcie_switch, root, LinkKind::pcie, pcie, kPcieHop / 2);
  }
  first_gpu_.push_back(vertices_.next_id());
  for (std::uint32_t i = 0; i < gpus; ++i) {
    const VertexId gpu = vertices_.push_back({VertexKind::gpu, host, i});
    connect(gpu, VertexId{first_switch.value + i / per_switch}, LinkKind::pcie, pcie, kPcieHop / 2);
  }
  connect_gpus(cluster, host);
  const auto nics = static_cast<std::uint32_t>(std::max(node.nic.count, 0));
  for (std::uint32_t i = 0; leaf_.valid() && i < nics; ++i) {
    const VertexId nic = vertices_.push_back({VertexKind::nic, host, i});
    // NICs are spread evenly over the switches; a NIC's own slot is as wide as the NIC.
    connect(nic, VertexId{first_switch.value + i * switches / nics}, LinkKind::pcie,
            std::max(pcie, node.nic.bandwidth), Duration{});
    connect(nic, leaf_, LinkKind::network, node.nic.bandwidth, kNicLink);
  }
}

void Topology::connect_gpus(const ClusterSpec& cluster, std::uint32_t host) {
  const ByteRate nvlink = cluster.gpu.nvlink;
  const auto gpus = static_cast<std::uint32_t>(std::max(cluster.node.gpus, 1));
  if (nvlink.per_second <= 0 || gpus == 1) return;
  const VertexId first = first_gpu_[host];
  const auto gpu = [&](std::uint32_t i) { return VertexId{first.value + i}; };
  switch (cluster.node.interconnect) {
    case GpuInterconnect::nvswitch: {
      const VertexId nvswitch = vertices_.push_back({VertexKind::nvswitch, host, 0});
      for (std::uint32_t i = 0; i < gpus; ++i) {
        connect(gpu(i), nvswitch, LinkKind::nvlink, nvlink, kNvlinkHop / 2);
      }
      break;
    }
    case GpuInterconnect::nvlink_mesh:
      for (std::uint32_t i = 0; i < gpus; ++i) {
        for (std::uint32_t j = i + 1; j < gpus; ++j) {
          connect(gpu(i), gpu(j), LinkKind::nvlink, nvlink / (gpus - 1), kNvlinkHop);
        }
      }
      break;
    case GpuInterconnect::nvlink_pairs:
      for (std::uint32_t i = 0; i + 1 < gpus; i += 2) {
        connect(gpu(i), gpu(i + 1), LinkKind::nvlink, nvlink, kNvlinkHop);
      }
      break;
    case GpuInterconnect::pcie:
      break;
  }
}

void Topology::connect(VertexId a, VertexId b, LinkKind kind, ByteRate bandwidth,
                       Duration latency) {
  links_.push_back({a, b, kind, bandwidth, latency});
  links_.push_back({b, a, kind, bandwidth, latency});
}

std::vector<LinkId> Topology::route(VertexId from, VertexId to) const {
  if (from == to) return {};
  // Breadth first, one level of hops at a time; inside a level a vertex keeps the widest way to it.
  struct Reached {
    LinkId by;
    double width = 0;
    std::uint32_t level = 0;  // 0: not reached
  };
  std::vector<Reached> reached(vertices_.size());
  std::vector<VertexId> level{from}, next;
  reached[from.value] = {{}, std::numeric_limits<double>::infinity(), 1};
  for (std::uint32_t hops = 2; !level.empty() && reached[to.value].level == 0; ++hops) {
    for (const VertexId at : level) {
      // A GPU forwards nothing for others.
      if (at != from && vertices_[at].kind == VertexKind::gpu) continue;
      for (std::uint32_t i = first_out_[at.value]; i < first_out_[at.value + 1]; ++i) {
        const Link& link = links_[out_[i]];
        Reached& there = reached[link.to.value];
        const double width = std::min(reached[at.value].width, link.bandwidth.per_second);
        if (there.level == 0) next.push_back(link.to);
        if (there.level == 0 || (there.level == hops && width > there.width)) {
          there = {out_[i], width, hops};
        }
      }
    }
    level.swap(next);
    next.clear();
  }
  std::vector<LinkId> links;
  if (reached[to.value].level == 0) return links;
  for (VertexId at = to; at != from; at = links_[links.back()].from) {
    links.push_back(reached[at.value].by);
  }
  std::reverse(links.begin(), links.end());
  return links;
}

void Topology::index_links() {
  first_out_.assign(vertices_.size() + 1, 0);
  for (const Link& link : links_) ++first_out_[link.from.value + 1];
  for (std::size_t v = 1; v < first_out_.size(); ++v) first_out_[v] += first_out_[v - 1];
  out_.resize(links_.size());
  std::vector<std::uint32_t> next(first_out_.begin(), first_out_.end() - 1);
  for (LinkId id{0}; id.value < links_.size(); ++id.value) {
    out_[next[links_[id].from.value]++] = id;
  }
}

}  // namespace sim::network
