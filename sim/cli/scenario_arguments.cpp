#include "sim/cli/scenario_arguments.h"

#include <memory>

#include <CLI/CLI.hpp>

#include "sim/cli/output.h"

namespace sim::cli {

namespace {

// A command-line value as a source, so that a complaint can point into it.
Span place_of(const std::string& option, const std::string& value) {
  auto source = std::make_shared<SourceFile>(SourceFile{option, value});
  return {std::move(source), 1, 1, std::max(1, static_cast<int>(value.size()))};
}

}  // namespace

void declare(CLI::App& app, ScenarioArguments& arguments) {
  app.add_option("scenario", arguments.path, "a scenario file (YAML)")->required();
  app.add_option("--set", arguments.settings, "lay KEY=VALUE over the file, repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("-o,--output", arguments.output, "write the result to FILE")->type_name("FILE");
}

std::vector<Override> overrides(const ScenarioArguments& arguments, Diagnostics& diagnostics) {
  std::vector<Override> all;
  for (const std::string& setting : arguments.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error(place_of("--set", setting), "KEY=VALUE expected",
                        "--set job.micro_batch_size=4");
      continue;
    }
    all.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  may_write(arguments.output, {arguments.path}, diagnostics);
  return all;
}

}  // namespace sim::cli
