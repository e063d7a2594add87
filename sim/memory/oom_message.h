// The text of PyTorch's CUDA out-of-memory exception, word for word, by release.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/memory/allocator_profile.h"

namespace sim::memory {

// c10's format_size: 64 MiB is "64.00 MiB", and exactly 1 GiB is "1024.00 MiB".
std::string format_size(Bytes size);

// A compute process that NVML lists on the device. In a container the own pid does not match, and
// the own process appears like any other.
struct DeviceProcess {
  std::int64_t pid = 0;
  Bytes used;
  bool is_this_process = false;
};

struct OomFigures {
  Bytes tried;                   // AllocResult::segment_size
  int gpu = 0;                   // process-local device index
  Bytes total, free;             // cudaMemGetInfo
  std::optional<Bytes> allowed;  // the memory fraction, if one is set
  Bytes allocated, reserved;
  std::vector<DeviceProcess> processes;  // printed from 2.1 on; empty without NVML
};

std::string oom_message(const AllocatorProfile& profile, const OomFigures& figures);

}  // namespace sim::memory
