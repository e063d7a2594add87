#include "sim/program/libraries/facts.h"

namespace sim::program {

const Catalog<Library>& library_catalog() {
  static constexpr const Library* kAll[] = {&kTorch, &kTransformers, &kAccelerate, &kBitsandbytes,
                                            &kPeft,  &kDeepSpeed,    &kNccl};
  static constexpr Catalog<Library> kCatalog("library", kAll);
  return kCatalog;
}

}  // namespace sim::program
