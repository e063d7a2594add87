#include "sim/plan/architectures/architecture.h"

namespace sim::plan {

extern const Architecture kLlama, kMistral, kQwen2, kInternlm, kInternlm2;

const Catalog<Architecture>& architecture_catalog() {
  static constexpr const Architecture* kAll[] = {&kLlama, &kMistral, &kQwen2, &kInternlm,
                                                 &kInternlm2};
  static constexpr Catalog<Architecture> kCatalog("architecture", kAll);
  return kCatalog;
}

}  // namespace sim::plan
