#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Catalog<Operator>& operator_catalog() {
  static constexpr const Operator* kAll[] = {
      &kLinear, &kMatmul,  &kEmbedding, &kCast,         &kPointwise, &kReduce,
      &kShape,  &kSoftmax, &kAttention, &kCrossEntropy, &kDropout,   &kPackedLinear};
  static constexpr Catalog<Operator> kCatalog("operator", kAll);
  return kCatalog;
}

}  // namespace sim::plan
