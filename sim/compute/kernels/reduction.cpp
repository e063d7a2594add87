// Sums, means, maxima, norms: in = {x, ..}, out = {smaller tensors}.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

const KernelKind kReduction{
    "reduction", "sums and norms over dimensions",
    false,       [](const Kernel& kernel) { return streaming_work(kernel, 1); },
    1,           kStreamingBandwidth,
    {.in = 1}};

}  // namespace sim::compute
