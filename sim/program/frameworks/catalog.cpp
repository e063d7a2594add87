#include <fmt/format.h>

#include "sim/program/strategy.h"

namespace sim::program {

extern const Framework kNone, kTorchDdp, kTorchFsdp1, kDeepSpeedEngine, kZero1, kZero2, kZero3;

const Catalog<Framework>& framework_catalog() {
  static constexpr const Framework* kAll[] = {&kNone,  &kTorchDdp, &kTorchFsdp1, &kDeepSpeedEngine,
                                              &kZero1, &kZero2,    &kZero3};
  static constexpr Catalog<Framework> kCatalog("strategy", kAll);
  return kCatalog;
}

const Framework* choose_framework(const Scenario& scenario, const StrategySpec*& spec,
                                  Diagnostics& diagnostics) {
  spec = nullptr;
  const auto& strategies = scenario.job.strategies;
  const auto& named = scenario.job.framework;
  if (strategies.size() > 1) {
    diagnostics.error(strategies[1].name.at, "only one strategy can shard the model",
                      fmt::format("'{}' is already given", strategies[0].name.name));
    return nullptr;
  }
  if (!strategies.empty()) spec = &strategies.front();
  if (spec == nullptr && !named) return &kNone;
  const Named& name = spec != nullptr ? spec->name : *named;
  if (spec != nullptr && named && named->name != name.name) {
    diagnostics.error(
        named->at, fmt::format("framework '{}' and strategy '{}' are two", named->name, name.name),
        "job.framework repeats the strategy's name, or stands alone with its defaults");
    return nullptr;
  }
  return framework_catalog().find(name, diagnostics);
}

}  // namespace sim::program
