// How long everything takes that a program can issue, looked up once per distinct kernel and
// collective before the run.
#pragma once

#include "sim/base/ids.h"
#include "sim/engine/machine.h"
#include "sim/program/program.h"

namespace sim::engine {

// Host time of cudaMalloc and of cudaFree, per segment: medians between the allocator's events in
// recorded runs on H200 with PyTorch 2.11 (150 us more before a new segment than before a cached
// block; 153 and 172 us from one segment_free to the next).
inline constexpr Duration kCudaMalloc = 150_us;
inline constexpr Duration kCudaFree = 160_us;

struct Costs {
  IdVector<program::KernelId, Duration> kernels;
  IdVector<program::CollectiveId, Duration> collectives;
  Duration launch{};  // host time of any launch
  ByteRate pinned, pageable_in, pageable_out, inside;

  // Device time of a copy.
  Duration copy(const program::Copy& copy) const;
};

Costs make_costs(const program::Program& program, const program::Workload& workload,
                 const Machine& machine);

}  // namespace sim::engine
