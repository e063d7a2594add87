// The bytes of a kernel that touches each operand once.
#pragma once

#include <algorithm>

#include "sim/compute/kernel.h"

namespace sim::compute {

// Of a streaming kernel, of the memory's peak: 1328 of 1555 GB/s on the A100-SXM4-40GB (FlagPerf's
// main_memory-bandwidth), 1776 of 2039 GB/s on the 80 GB card (gpu-benches' gpu-stream).
inline constexpr double kStreamingBandwidth = 0.86;

inline Bytes bytes_of(const std::vector<TensorType>& tensors) {
  Bytes sum;
  for (const TensorType& tensor : tensors) sum += tensor.bytes();
  return sum;
}

inline std::int64_t most_elements(const std::vector<TensorType>& tensors) {
  std::int64_t most = 0;
  for (const TensorType& tensor : tensors) most = std::max(most, tensor.shape.elements());
  return most;
}

// Every operand once, and `per_element` operations for each element of the largest.
inline Work streaming_work(const Kernel& kernel, double per_element) {
  const auto elements = std::max(most_elements(kernel.in), most_elements(kernel.out));
  return {Flops{static_cast<double>(elements) * per_element}, bytes_of(kernel.in),
          bytes_of(kernel.out)};
}

}  // namespace sim::compute
