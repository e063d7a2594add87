#include "sim/cli/command.h"

namespace sim::cli {

const Catalog<Command>& command_catalog() {
  static constexpr const Command* kEntries[] = {&kRun,      &kCheck,  &kPlan,     &kProgram,
                                                &kTimeline, &kReplay, &kValidate, &kList};
  static constexpr Catalog<Command> kCatalog("command", kEntries);
  return kCatalog;
}

}  // namespace sim::cli
