#include "sim/program/optimizers/optimizer.h"

namespace sim::program {

extern const Optimizer kAdamw, kAdamw8bit, kPagedAdamw32bit, kPagedAdamw8bit;

const Catalog<Optimizer>& optimizer_catalog() {
  static constexpr const Optimizer* kAll[] = {&kAdamw, &kAdamw8bit, &kPagedAdamw32bit,
                                              &kPagedAdamw8bit};
  static constexpr Catalog<Optimizer> kCatalog("optimizer", kAll);
  return kCatalog;
}

}  // namespace sim::program
