#include "sim/program/strategy.h"

namespace sim::program {

extern const Framework kNone, kTorchDdp, kTorchFsdp1;

const Catalog<Framework>& framework_catalog() {
  static constexpr const Framework* kAll[] = {&kNone, &kTorchDdp, &kTorchFsdp1};
  static constexpr Catalog<Framework> kCatalog("strategy", kAll);
  return kCatalog;
}

const Framework* choose_framework(const Scenario& scenario, const StrategySpec*& spec,
                                  Diagnostics& diagnostics) {
  spec = nullptr;
  const auto& strategies = scenario.job.strategies;
  if (strategies.empty()) return &kNone;
  if (strategies.size() > 1) {
    diagnostics.error(strategies[1].name.at, "only one strategy can shard the model",
                      "'" + strategies[0].name.name + "' is already given");
    return nullptr;
  }
  spec = &strategies.front();
  return framework_catalog().find(spec->name, diagnostics);
}

}  // namespace sim::program
