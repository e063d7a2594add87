// Nodes, GPUs, NICs and the links between them; routes between GPUs and hosts.
#pragma once

#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/scenario/hardware_spec.h"

namespace sim::network {

struct VertexTag;
struct LinkTag;
using VertexId = Id<VertexTag>;
using LinkId = Id<LinkTag>;

enum class VertexKind : std::uint8_t {
  gpu,
  nvswitch,
  pcie_switch,
  host,
  nic,
  leaf_switch,
  spine_switch
};
enum class LinkKind : std::uint8_t { nvlink, pcie, network };

struct Vertex {
  VertexKind kind;
  std::uint32_t host = 0;   // node of the cluster; 0 for switches outside nodes
  std::uint32_t index = 0;  // physical GPU, NIC or switch number on that node
};

// One direction of a cable.
struct Link {
  VertexId from, to;
  LinkKind kind;
  ByteRate bandwidth;
  Duration latency;
};

// Where one rank runs.
struct Place {
  std::uint32_t host = 0;
  std::uint32_t physical_gpu = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Topology {
 public:
  // Builds the graph of a whole cluster: per node its GPUs, NVSwitch or direct NVLinks, PCIe
  // switches, host and NICs; between nodes one leaf switch that never blocks. Diagnoses a GPU
  // without a route to another.
  static Topology make(const ClusterSpec& cluster, Diagnostics& diagnostics);

  const IdVector<VertexId, Vertex>& vertices() const { return vertices_; }
  const IdVector<LinkId, Link>& links() const { return links_; }
  VertexId gpu(Place place) const;
  VertexId host(std::uint32_t host) const;
  int nics_per_host() const { return nics_per_host_; }
  // Links in order, by fewest hops, then by widest bottleneck; empty where there is none or from ==
  // to.
  std::vector<LinkId> route(VertexId from, VertexId to) const;

 private:
  void add_node(const ClusterSpec& cluster, std::uint32_t host);
  void connect_gpus(const ClusterSpec& cluster, std::uint32_t host);
  void connect(VertexId a, VertexId b, LinkKind kind, ByteRate bandwidth, Duration latency);
  void index_links();

  IdVector<VertexId, Vertex> vertices_;
  IdVector<LinkId, Link> links_;
  std::vector<VertexId> hosts_;           // by node
  std::vector<VertexId> first_gpu_;       // by node; its GPUs follow one another
  std::vector<std::uint32_t> first_out_;  // by vertex, into out_
  std::vector<LinkId> out_;               // links by their origin
  VertexId leaf_;
  int nics_per_host_ = 0;
};

}  // namespace sim::network
