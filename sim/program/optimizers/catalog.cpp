#include "sim/program/optimizers/optimizer.h"

namespace sim::program {

extern const Optimizer kAdamw;

const Catalog<Optimizer>& optimizer_catalog() {
  static constexpr const Optimizer* kAll[] = {&kAdamw};
  static constexpr Catalog<Optimizer> kCatalog("optimizer", kAll);
  return kCatalog;
}

}  // namespace sim::program
