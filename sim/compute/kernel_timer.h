// Kernel -> Duration on one kind of GPU. Where no calibration table reaches, a roofline answers,
// and the estimate says so.
#pragma once

#include "sim/base/units.h"
#include "sim/compute/kernel.h"
#include "sim/scenario/hardware_spec.h"

namespace sim::compute {

enum class EstimateBasis : std::uint8_t { measured, interpolated, extrapolated, roofline };

struct KernelEstimate {
  Duration duration;
  Duration low, high;  // band that the estimate's uncertainty spans
  EstimateBasis basis = EstimateBasis::roofline;
};

// Immutable once made; safe to share between threads.
class KernelTimer {
 public:
  explicit KernelTimer(const GpuSpec& gpu);
  KernelEstimate time(const Kernel& kernel) const;
  // Host time to launch one kernel.
  Duration launch_cost() const;

 private:
  GpuSpec gpu_;
};

}  // namespace sim::compute
