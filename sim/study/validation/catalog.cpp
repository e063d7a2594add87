#include "sim/study/validation/validation_set.h"

namespace sim::study {

const Catalog<ValidationSet>& validation_catalog() {
  static constexpr const ValidationSet* kEntries[] = {&kH200SweepMemory, &kH200Sharding};
  static constexpr Catalog<ValidationSet> kCatalog("validation set", kEntries);
  return kCatalog;
}

const report::PhaseSummary* find_phase(const report::RankSummary& rank, std::string_view name) {
  for (const report::PhaseSummary& phase : rank.phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

}  // namespace sim::study
