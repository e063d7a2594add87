// softmax and log_softmax over the last dimension: in = {x [.., n]}, out = {y [.., n]}; backward:
// in = {grad y, y}, out = {grad x}.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

// Maximum, difference, exponential, sum, quotient.
const KernelKind kSoftmax{
    "softmax", "softmax or log-softmax over the last dimension, and its gradient",
    false,     [](const Kernel& kernel) { return streaming_work(kernel, 5); },
    1,         kStreamingBandwidth,
    {.in = 1}};

}  // namespace sim::compute
