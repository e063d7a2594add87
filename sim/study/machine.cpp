#include <algorithm>
#include <utility>

#include "sim/study/run.h"

namespace sim::study {

namespace {

std::optional<Bytes> allowed_bytes(const AllocatorSpec& spec,
                                   const memory::AllocatorSettings& settings, Bytes total) {
  if (spec.cap) return std::min(*spec.cap, total);
  const std::optional<double> fraction =
      spec.memory_fraction ? spec.memory_fraction : settings.per_process_memory_fraction;
  if (!fraction) return std::nullopt;
  return Bytes{static_cast<std::int64_t>(*fraction * static_cast<double>(total.count))};
}

IdVector<RankId, network::Place> place_ranks(const ClusterSpec& cluster) {
  IdVector<RankId, network::Place> places;
  const auto per_node = static_cast<std::uint32_t>(cluster.processes_per_node.value);
  const auto world = static_cast<std::uint32_t>(cluster.world_size());
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const std::uint32_t local = rank % per_node;
    const std::uint32_t gpu = local < cluster.visible_devices.size()
                                  ? static_cast<std::uint32_t>(cluster.visible_devices[local])
                                  : local;
    places.push_back({rank / per_node, gpu});
  }
  return places;
}

// Where the scenario names the release; elsewhere the file as a whole is to blame.
Named torch_release(const Scenario& scenario, const program::Software& software) {
  const auto given = scenario.software.releases.find("torch");
  return {software.of("torch").text,
          given == scenario.software.releases.end() ? scenario.software.at : given->second.at};
}

struct Allocator {
  const memory::AllocatorProfile* profile;
  memory::AllocatorSettings settings;
};

std::optional<Allocator> choose_allocator(const Scenario& scenario,
                                          const program::Software& software,
                                          Diagnostics& diagnostics) {
  const memory::AllocatorProfile* profile =
      memory::find_allocator_profile(torch_release(scenario, software), diagnostics);
  if (profile == nullptr) return std::nullopt;
  if (scenario.allocator.conf.empty()) return Allocator{profile, {}};
  const auto settings = memory::parse_allocator_settings(
      {scenario.allocator.conf, scenario.allocator.conf_at}, *profile, diagnostics);
  return settings ? std::optional(Allocator{profile, *settings}) : std::nullopt;
}

}  // namespace

void check_allocator(const Scenario& scenario, const program::Software& software,
                     Diagnostics& diagnostics) {
  choose_allocator(scenario, software, diagnostics);
}

std::optional<engine::Machine> make_machine(const Scenario& scenario,
                                            const program::Software& software,
                                            Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  const auto allocator = choose_allocator(scenario, software, diagnostics);
  auto topology =
      std::make_shared<network::Topology>(network::Topology::make(scenario.cluster, diagnostics));
  if (!allocator || diagnostics.error_count() > errors) return std::nullopt;

  const ClusterSpec& cluster = scenario.cluster;
  engine::Machine machine;
  machine.cluster = cluster;
  // What a report printed replaces the data sheet. What lies outside the allocator is an op of the
  // programs.
  machine.gpu.total = scenario.observed.total.value_or(cluster.gpu.total_memory);
  machine.host.capacity =
      std::min(cluster.host_memory, cluster.container_memory_limit.value_or(cluster.host_memory));
  machine.place_of = place_ranks(cluster);
  machine.allocator = *allocator->profile;
  machine.allocator_settings = allocator->settings;
  machine.allowed = allowed_bytes(scenario.allocator, allocator->settings, machine.gpu.total);
  machine.timer = std::make_shared<compute::KernelTimer>(cluster.gpu);
  machine.topology = std::move(topology);
  return machine;
}

}  // namespace sim::study
