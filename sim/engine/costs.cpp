#include "sim/engine/costs.h"

#include <algorithm>

#include "sim/network/collective_timer.h"

namespace sim::engine {

namespace {

// Of the PCIe link's nominal rate. Pinned: 26 of 32 GB/s (superbench-results, Azure A100 fleet), 53
// of 64 GB/s on H200. Pageable: 7.2 of 32 GB/s to the device (FlagPerf on A100), 15.1 of 64 on
// H200; 10.7 of 64 from the device on H200.
constexpr double kPinned = 0.82;
constexpr double kPageableIn = 0.23;
constexpr double kPageableOut = 0.17;

// Copies inside the device read and write: 1328 of 1555 GB/s (FlagPerf on A100-SXM4-40GB).
constexpr double kInside = 0.86 / 2;

// Of a copy that moves next to nothing: 21 us from call to end on H200 (4 KiB, pinned), of
// which 5.5 us are the launch.
constexpr Duration kCopyStart = 15_us;

}  // namespace

Duration Costs::copy(const program::Copy& copy) const {
  using enum program::CopyDirection;
  ByteRate rate = inside;
  if (copy.direction != device_to_device) {
    rate = copy.pinned ? pinned : copy.direction == host_to_device ? pageable_in : pageable_out;
  }
  const Bytes bytes = Bytes{std::int64_t{copy.bytes_kib} * 1024};
  if (bytes.count == 0 || rate.per_second <= 0) return kCopyStart;
  return kCopyStart + bytes / rate;
}

Costs make_costs(const program::Program& program, const program::Workload& workload,
                 const Machine& machine) {
  Costs costs;
  for (const compute::Kernel& kernel : program.kernels) {
    costs.kernels.push_back(machine.timer->time(kernel).duration);
  }
  const network::CollectiveTimer timer(*machine.topology);
  for (const program::CollectiveCall& call : program.collectives) {
    std::vector<network::Place> places;
    for (const RankId rank : workload.groups[call.group].ranks) {
      places.push_back(machine.place_of[rank]);
    }
    costs.collectives.push_back(timer.time({call.kind, call.bytes, places}));
  }
  // Python and the dispatcher take longer than the launch itself.
  costs.launch = std::max(machine.timer->launch_cost(), machine.cluster.node.operator_overhead);
  const ByteRate own = machine.cluster.node.pcie_per_gpu;
  const ByteRate pcie = own.per_second > 0 ? own : machine.cluster.gpu.pcie;
  costs.pinned = pcie * kPinned;
  costs.pageable_in = pcie * kPageableIn;
  costs.pageable_out = pcie * kPageableOut;
  costs.inside = machine.cluster.gpu.memory_bandwidth * kInside;
  return costs;
}

}  // namespace sim::engine
