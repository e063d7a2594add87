// A fused optimizer update, of one tensor or of many: in = everything read (parameters, gradients,
// states), out = everything written. An optimizer that runs as many small operations is written as
// elementwise kernels instead.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

namespace {

// Adam's update of one parameter: two moving averages, a root, a quotient, decay and the step.
constexpr double kOperationsPerParameter = 14;

Work update(const Kernel& kernel) {
  std::int64_t written = 0;
  for (const TensorType& tensor : kernel.out) written += tensor.shape.elements();
  return {Flops{static_cast<double>(written) / 3 * kOperationsPerParameter}, bytes_of(kernel.in),
          bytes_of(kernel.out)};
}

}  // namespace

const KernelKind kOptimizer{"optimizer", "update of parameters and optimizer states",
                            false,       update,
                            1,           kStreamingBandwidth};

}  // namespace sim::compute
