// Copies and casts inside the device, and fills. copy: in = {x, ..}, out = {y, ..}; fill: in = {},
// out = {x, ..}.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

const KernelKind kCopy{"copy",   "copy or cast inside the device",
                       false,    [](const Kernel& kernel) { return streaming_work(kernel, 0); },
                       1,        kStreamingBandwidth,
                       {.in = 1}};

const KernelKind kFill{"fill", "write one value everywhere",
                       false,  [](const Kernel& kernel) { return streaming_work(kernel, 0); },
                       1,      kStreamingBandwidth};

}  // namespace sim::compute
