#include "sim/network/collective_timer.h"
#include "sim/network/sharing.h"
#include "sim/network/topology.h"
#include "tests/support/catch.h"

namespace sim::network {
namespace {

ClusterSpec cluster_of(GpuInterconnect interconnect, int gpus, int nodes) {
  ClusterSpec cluster;
  cluster.node.name = "test";
  cluster.node.gpus = gpus;
  cluster.node.interconnect = interconnect;
  cluster.node.gpus_per_pcie_switch = 2;
  cluster.node.nic = {8, 200_Gbps, "infiniband"};
  cluster.gpu.nvlink = 300_GBps;
  cluster.gpu.pcie = 32_GBps;
  cluster.nodes.value = nodes;
  return cluster;
}

Topology make(const ClusterSpec& cluster) {
  Diagnostics diagnostics;
  Topology topology = Topology::make(cluster, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
  return topology;
}

std::vector<Place> places(std::uint32_t hosts, std::uint32_t gpus) {
  std::vector<Place> all;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) all.push_back({host, gpu});
  }
  return all;
}

std::vector<LinkKind> kinds(const Topology& topology, VertexId from, VertexId to) {
  std::vector<LinkKind> all;
  for (const LinkId id : topology.route(from, to)) all.push_back(topology.links()[id].kind);
  return all;
}

TEST_CASE("GPUs of one node speak over NVLink where there is any") {
  using enum LinkKind;
  const Topology nvswitch = make(cluster_of(GpuInterconnect::nvswitch, 8, 1));
  CHECK(kinds(nvswitch, nvswitch.gpu({0, 0}), nvswitch.gpu({0, 1})) == std::vector{nvlink, nvlink});
  const Topology mesh = make(cluster_of(GpuInterconnect::nvlink_mesh, 4, 1));
  CHECK(kinds(mesh, mesh.gpu({0, 0}), mesh.gpu({0, 3})) == std::vector{nvlink});
  const Topology pairs = make(cluster_of(GpuInterconnect::nvlink_pairs, 4, 1));
  CHECK(kinds(pairs, pairs.gpu({0, 2}), pairs.gpu({0, 3})) == std::vector{nvlink});
  CHECK(kinds(pairs, pairs.gpu({0, 1}), pairs.gpu({0, 2})) == std::vector{pcie, pcie, pcie, pcie});
  const Topology plain = make(cluster_of(GpuInterconnect::pcie, 4, 1));
  CHECK(kinds(plain, plain.gpu({0, 0}), plain.gpu({0, 1})) == std::vector{pcie, pcie});
  CHECK(plain.route(plain.gpu({0, 0}), plain.gpu({0, 0})).empty());
}

TEST_CASE("GPUs of two nodes speak through their NICs") {
  using enum LinkKind;
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 2));
  CHECK(kinds(topology, topology.gpu({0, 5}), topology.gpu({1, 5})) ==
        std::vector{pcie, pcie, network, network, pcie, pcie});
  CHECK(kinds(topology, topology.gpu({0, 5}), topology.host(0)) == std::vector{pcie, pcie});
}

TEST_CASE("nodes without a NIC are diagnosed") {
  ClusterSpec cluster = cluster_of(GpuInterconnect::nvswitch, 8, 2);
  cluster.node.nic.count = 0;
  Diagnostics diagnostics;
  Topology::make(cluster, diagnostics);
  CHECK(diagnostics.has_errors());
}

TEST_CASE("all-reduce on eight A100 with NVSwitch comes near nccl-tests") {
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 1));
  const CollectiveTimer timer(topology);
  const auto ranks = places(1, 8);
  const auto micros = [&](std::int64_t bytes) {
    return 1e6 * to_seconds(timer.time({CollectiveKind::all_reduce, {bytes}, ranks}));
  };
  CHECK(micros(8) == Approx(17.7).epsilon(0.2));
  CHECK(micros(1 << 30) == Approx(8244.5).epsilon(0.05));
  CHECK(micros(1LL << 32) == Approx(32285).epsilon(0.05));
}

TEST_CASE("an all-gather or reduce-scatter takes half of an all-reduce's moving time") {
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 1));
  const CollectiveTimer timer(topology);
  const auto ranks = places(1, 8);
  const Bytes size = 1_GiB;
  const double reduce = to_seconds(timer.time({CollectiveKind::all_reduce, size, ranks}));
  const double gather = to_seconds(timer.time({CollectiveKind::all_gather, size, ranks}));
  CHECK(reduce / gather == Approx(2).epsilon(0.01));
  CHECK(timer.time({CollectiveKind::reduce_scatter, size, ranks}) ==
        timer.time({CollectiveKind::all_gather, size, ranks}));
  CHECK(timer.time({CollectiveKind::all_gather, size, places(1, 1)}) == Duration{});
}

TEST_CASE("between nodes the NICs set the pace, and members share them out") {
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 4));
  const CollectiveTimer timer(topology);
  const Bytes size = 4_GiB;
  const double all = to_seconds(timer.time({CollectiveKind::all_gather, size, places(4, 8)}));
  const double one = to_seconds(timer.time({CollectiveKind::all_gather, size, places(4, 1)}));
  CHECK(all == Approx(31.0 / 32 * 4.295 / (8 * 25 * 0.95)).epsilon(0.02));
  CHECK(one == Approx(3.0 / 4 * 4.295 / (25 * 0.95)).epsilon(0.02));
}

TEST_CASE("an all-to-all sends only the other node's part through the NICs") {
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 2));
  const CollectiveTimer timer(topology);
  const double time = to_seconds(timer.time({CollectiveKind::all_to_all, 1_GiB, places(2, 8)}));
  CHECK(time == Approx(8 * 0.5 * 1.0737 / (8 * 25 * 0.95)).epsilon(0.02));
}

TEST_CASE("a transfer alone goes at its narrowest link") {
  const Topology topology = make(cluster_of(GpuInterconnect::nvswitch, 8, 1));
  const CollectiveTimer timer(topology);
  CHECK(to_seconds(timer.transfer(32_GB, topology.gpu({0, 0}), topology.host(0))) ==
        Approx(1).epsilon(0.001));
}

TEST_CASE("links are shared fairly") {
  // Two flows on a thin link leave a third flow the rest of a wide one.
  const std::vector<double> capacities{10, 2};
  const std::vector<std::vector<std::uint32_t>> routes{{0, 1}, {0, 1}, {0}};
  CHECK(max_min_rates(capacities, routes) == std::vector<double>{1, 1, 8});
  CHECK(max_min_rates(capacities, std::vector<std::vector<std::uint32_t>>{}).empty());
}

}  // namespace
}  // namespace sim::network
