#include <algorithm>
#include <utility>

#include "sim/base/units_text.h"
#include "sim/study/run.h"

namespace sim::study {

namespace {

// What the report printed replaces the data sheet. The lowering turns what lies outside the
// allocator into an op; here it is only put on record.
Bytes device_total(const Scenario& scenario, Assumptions& assumptions) {
  const ObservedSpec& observed = scenario.observed;
  const Bytes total = observed.total.value_or(scenario.cluster.gpu.total_memory);
  if (observed.total) {
    assumptions.add("observed.total", to_text_exact(*observed.total),
                    "taken from the report, not predicted");
  }
  if (observed.free && observed.reserved) {
    assumptions.add("observed.outside_allocator",
                    to_text_exact(total - *observed.reserved - *observed.free),
                    "total - reserved - free of the report: fixes their sum, not their shares");
  } else if (observed.outside_allocator) {
    assumptions.add("observed.outside_allocator", to_text_exact(*observed.outside_allocator),
                    "as the scenario states, not predicted");
  }
  return total;
}

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

}  // namespace

std::optional<engine::Machine> make_machine(const Scenario& scenario,
                                            const program::Software& software,
                                            Assumptions& assumptions, Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  const memory::AllocatorProfile* profile =
      memory::find_allocator_profile(torch_release(scenario, software), diagnostics);
  if (profile == nullptr) return std::nullopt;
  std::optional<memory::AllocatorSettings> settings = memory::AllocatorSettings{};
  if (!scenario.allocator.conf.empty()) {
    settings = memory::parse_allocator_settings(
        {scenario.allocator.conf, scenario.allocator.conf_at}, *profile, diagnostics);
  }
  auto topology =
      std::make_shared<network::Topology>(network::Topology::make(scenario.cluster, diagnostics));
  if (!settings || diagnostics.error_count() > errors) return std::nullopt;

  const ClusterSpec& cluster = scenario.cluster;
  engine::Machine machine;
  machine.cluster = cluster;
  machine.gpu.total = device_total(scenario, assumptions);
  machine.host.capacity =
      std::min(cluster.host_memory, cluster.container_memory_limit.value_or(cluster.host_memory));
  machine.place_of = place_ranks(cluster);
  machine.allocator = *profile;
  machine.allocator_settings = *settings;
  machine.allowed = allowed_bytes(scenario.allocator, *settings, machine.gpu.total);
  machine.timer = std::make_shared<compute::KernelTimer>(cluster.gpu);
  machine.topology = std::move(topology);
  return machine;
}

}  // namespace sim::study
