// Any function of elements at equal places: in = any number of tensors, out = any number. Broadcast
// operands stand with the shape they have in memory, so they are read once.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

const KernelKind kElementwise{"elementwise",
                              "a function of elements at equal places",
                              false,
                              [](const Kernel& kernel) { return streaming_work(kernel, 1); },
                              1,
                              kStreamingBandwidth};

}  // namespace sim::compute
