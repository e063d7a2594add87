#include "sim/network/collectives/algorithms.h"

namespace sim::network {

const Catalog<CollectiveAlgorithm>& collective_catalog() {
  static constexpr const CollectiveAlgorithm* kEntries[] = {&kRing, &kTree, &kPairwise};
  static constexpr Catalog<CollectiveAlgorithm> kCatalog{"collective algorithm", kEntries};
  return kCatalog;
}

}  // namespace sim::network
