// The operator families, one file each.
#pragma once

#include "sim/plan/graph_builder.h"

namespace sim::plan {

extern const Operator kLinear, kMatmul, kEmbedding, kCast, kPointwise, kReduce, kShape, kSoftmax,
    kAttention, kCrossEntropy, kDropout, kPackedLinear;

}  // namespace sim::plan
