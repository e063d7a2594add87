#include "sim/plan/operators/reduction_workspace.h"

#include <algorithm>

namespace sim::plan {

namespace {

// aten/src/ATen/native/cuda/Reduce.cuh: setReduceConfig and ReduceConfig, for the case that the
// fastest dimension is kept ("vectorize along output").
constexpr std::int64_t kMaxThreads = 512, kWarp = 32, kThreadsPerMultiprocessor = 2048;
constexpr std::int64_t kMinValuesPerThread = 16, kMaxValuesPerThread = 256;
constexpr std::int64_t kAccumulator = 4;  // bytes of the fp32 partial sums

std::int64_t last_power_of_two(std::int64_t n) {
  std::int64_t p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

std::int64_t output_vector(std::int64_t columns) {
  return columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
}

}  // namespace

ReductionWorkspace row_sum_workspace(std::int64_t rows, std::int64_t columns, int multiprocessors) {
  const std::int64_t vector = output_vector(columns);
  const std::int64_t most = kMaxThreads / vector;
  const std::int64_t wide =
      std::min(last_power_of_two(std::max<std::int64_t>(columns / vector, 1)), most);
  const std::int64_t high = std::min(last_power_of_two(rows), most);
  std::int64_t width = std::min(wide, kWarp);
  const std::int64_t height = std::min(high, most / width);
  width = std::min(wide, most / height);

  if (rows < height * kMinValuesPerThread && rows < kMaxValuesPerThread) return {};
  const std::int64_t per_thread = divide_up(rows, height);
  const std::int64_t grid = divide_up(columns / vector, width);
  const std::int64_t target = multiprocessors * (kThreadsPerMultiprocessor / (width * height));
  if (per_thread < kMaxValuesPerThread || grid > target) return {};
  const std::int64_t blocks =
      std::max(std::min(divide_up(target, grid), divide_up(per_thread, kMinValuesPerThread)),
               divide_up(per_thread, kMaxValuesPerThread));
  if (blocks <= 1) return {};
  return {Bytes{kAccumulator * columns * blocks * width * vector}, Bytes{4 * grid}};
}

}  // namespace sim::plan
