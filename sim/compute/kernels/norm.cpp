// A layer norm or RMS norm that is one kernel: in = {x [.., h], weight [h], bias [h]?}, out = {y
// [.., h], statistics [..]}; backward: in = {grad y, x, weight, statistics}, out = {grad x, grad
// weight, ..}. A norm written in Python is a row of elementwise and reduction kernels instead.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

// Mean, variance, difference, scale, shift.
const KernelKind kNorm{"norm",   "layer or RMS norm in one kernel, and its gradient",
                       false,    [](const Kernel& kernel) { return streaming_work(kernel, 6); },
                       1,        kStreamingBandwidth,
                       {.in = 1}};

}  // namespace sim::compute
