// Matrix products. gemm: in = {[.., m, k], [n, k], bias [n]?}, out = {[.., m, n]}; batched_gemm: in
// =
// {[b, m, k], [b, n, k]}, out = {[b, m, n]}. Both inputs end in the dimension that is summed over,
// whatever the storage order: a product of transposed operands is written with its shapes turned.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

namespace {

Work product(const Kernel& kernel) {
  const double summed = static_cast<double>(kernel.in.front().shape[-1]);
  const double results = static_cast<double>(kernel.out.front().shape.elements());
  return {Flops{2 * results * summed}, bytes_of(kernel.in), bytes_of(kernel.out)};
}

// Large products in bf16 and fp16 on A100: 0.80-0.87 of 312 TFLOP/s (FlagPerf: mm 265, linear 280;
// Azure's cuBLASLt sweep: 254 at 8192 cubed), best found 0.87 (ml-engineering, 271.2).
constexpr double kFraction = 0.83;

}  // namespace

const KernelKind kGemm{"gemm",
                       "matrix product {[.., m, k], [n, k]} -> {[.., m, n]}",
                       true,
                       product,
                       kFraction,
                       kStreamingBandwidth,
                       {.in = 2, .rank = 1}};

const KernelKind kBatchedGemm{"batched_gemm",
                              "matrix products {[b, m, k], [b, n, k]} -> {[b, m, n]}",
                              true,
                              product,
                              kFraction,
                              kStreamingBandwidth,
                              {.in = 2, .rank = 1}};

}  // namespace sim::compute
