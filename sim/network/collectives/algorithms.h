// The collective algorithms by name; each has its file.
#pragma once

#include "sim/network/collective_timer.h"

namespace sim::network {

extern const CollectiveAlgorithm kRing;
extern const CollectiveAlgorithm kTree;
extern const CollectiveAlgorithm kPairwise;

}  // namespace sim::network
