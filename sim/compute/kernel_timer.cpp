#include "sim/compute/kernel_timer.h"

#include <algorithm>

namespace sim::compute {

namespace {

// Of one launch, whatever it does: kernels of a CUDA graph that do next to nothing follow one
// another every 1.4 us on A100 (gpu-benches' gpu-small-kernels).
constexpr Duration kDeviceFloor = 1400_ns;

// Of the CPU, per launch: 5.5 us, fleet mean of 2,668 Azure A100 nodes
// (microsoft/superbench-results, kernel-launch by event timing).
constexpr Duration kLaunchCost = 5500_ns;

// Where the roofline's fractions are those of large launches, real ones reach from 0.55 to 1.1
// times that rate (fp16 products of vidur's A100 table from 1024 tokens up).
constexpr double kLow = 0.9;
constexpr double kHigh = 1.8;

DType rate_dtype(const Kernel& kernel) {
  if (!kernel.kind->matrix || kernel.in.empty()) return DType::f32;
  const DType dtype = kernel.in.front().dtype;
  return dtype == DType::f32 && kernel.tf32 ? DType::tf32 : dtype;
}

// The GPU's rate for a dtype; for one that its file does not give, the fp32 rate.
FlopRate peak_rate(const GpuSpec& gpu, DType dtype) {
  const auto found = gpu.peak.find(dtype);
  if (found != gpu.peak.end()) return found->second;
  const auto plain = gpu.peak.find(DType::f32);
  return plain != gpu.peak.end() ? plain->second : FlopRate{};
}

Duration scaled(Duration d, double factor) { return from_seconds(to_seconds(d) * factor); }

}  // namespace

KernelTimer::KernelTimer(const GpuSpec& gpu) : gpu_(gpu) {}

KernelEstimate KernelTimer::time(const Kernel& kernel) const {
  const Work work = kernel.kind->work(kernel);
  const FlopRate rate = peak_rate(gpu_, rate_dtype(kernel)) * kernel.kind->compute_fraction;
  const ByteRate bandwidth = gpu_.memory_bandwidth * kernel.kind->bandwidth_fraction;
  Duration busy{};
  if (work.flops.count > 0 && rate.per_second > 0) busy = work.flops / rate;
  const Bytes moved = work.read + work.written;
  if (moved.count > 0 && bandwidth.per_second > 0) busy = std::max(busy, moved / bandwidth);
  return {kDeviceFloor + busy, kDeviceFloor + scaled(busy, kLow),
          kDeviceFloor + scaled(busy, kHigh), EstimateBasis::roofline};
}

Duration KernelTimer::launch_cost() const { return kLaunchCost; }

}  // namespace sim::compute
