// One verb of `rehearse`. `add` declares its options on `app` and returns what runs it; the
// returned function gives the exit code: 0 it fits, 1 it does not, 2 trouble.
#pragma once

#include <functional>
#include <string_view>

#include "sim/base/catalog.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace sim::cli {

struct Command {
  std::string_view name;
  std::string_view description;
  std::string_view exit_codes;  // what 0 and 1 say: "0 the job fits, 1 it does not"
  std::function<int()> (*add)(CLI::App& app);
};

inline constexpr std::string_view kPrinted =
    "0 it is printed";  // of a command with no other answer

// Each command defines itself in commands/<name>.cpp; commands/catalog.cpp lists them.
extern const Command kRun, kCheck, kPlan, kProgram, kTimeline, kReplay, kValidate, kList;
const Catalog<Command>& command_catalog();

}  // namespace sim::cli
