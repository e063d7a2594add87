// Random numbers: in = {} or {x} (dropout), out = {y, ..}.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

namespace {

// Philox-4x32 with ten rounds makes four numbers from about 100 integer operations
// (ATen/core/PhiloxRNGEngine.h).
constexpr double kOperationsPerNumber = 25;

}  // namespace

const KernelKind kRandom{
    "random", "random numbers, dropout",
    false,    [](const Kernel& kernel) { return streaming_work(kernel, kOperationsPerNumber); },
    1,        kStreamingBandwidth};

}  // namespace sim::compute
