// rehearse VERB [INPUT] [--options]. Exit codes: 0 it fits, 1 it does not, 2 trouble.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sim/base/diagnostics.h"
#include "sim/base/text.h"
#include "sim/cli/command.h"
#include "sim/cli/output.h"

namespace sim::cli {
namespace {

constexpr int kTrouble = 2;

constexpr const char* kExamples =
    R"(Replays a distributed training job on a modelled cluster: where its memory
goes, when it runs out, how long a step takes.

Examples:
  rehearse run scenarios/vicuna-7b-fsdp-save.yaml
  rehearse run job.yaml --json --set job.micro_batch_size=4
  rehearse check job.yaml
  rehearse list models
)";

constexpr const char* kExitCodes =
    R"(Exit codes: 0 yes (the job fits), 1 no, 2 the input is wrong.
'rehearse VERB --help' explains one command.)";

// People who come from training scripts type underscores: --fsdp_config means --fsdp-config.
std::vector<std::string> normalised(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const auto name_end = argument.begin() + static_cast<std::ptrdiff_t>(
                                                 std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), name_end, '_', '-');
  }
  return arguments;
}

// The word that stands where the verb belongs, if it is none.
std::string unknown_verb(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-")) continue;
    return command_catalog().find(argument) == nullptr ? argument : "";
  }
  return "";
}

int complain(const std::string& message) {
  fmt::print(stderr, "rehearse: error: {}\n", message);
  return kTrouble;
}

// CLI11's own codes are 100 and more; ours are three.
int explain(CLI::App& app, const CLI::ParseError& error,
            const std::vector<std::string>& arguments) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string verb = unknown_verb(arguments);
  if (verb.empty()) {
    return complain(fmt::format("{}\n  help: rehearse --help", error.what()));
  }
  const std::string near = nearest(verb, command_catalog().names());
  return complain(fmt::format(
      "unknown command '{}'\n  help: {}", verb,
      near.empty() ? fmt::format("the commands are {}", fmt::join(command_catalog().names(), ", "))
                   : fmt::format("did you mean '{}'?", near)));
}

constexpr std::size_t kHelpColumns = 80;
constexpr std::size_t kNameColumns = 26;

// CLI11 puts a description behind the names as it stands; lines are ours to break.
std::string beside_names(const std::string& description) {
  std::string text = wrap(description, kHelpColumns - kNameColumns);
  text.pop_back();
  return text;
}

void lay_out(CLI::App& app) {
  app.get_formatter()->column_width(kNameColumns);
  for (CLI::Option* option : app.get_options()) {
    option->description(beside_names(option->get_description()));
  }
}

int run(int argc, char** argv) {
  CLI::App app(kExamples, "rehearse");
  app.footer(kExitCodes);
  app.set_version_flag("--version", "rehearse " SIM_VERSION, "print the version");
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Command* command : command_catalog().entries()) {
    CLI::App* verb = app.add_subcommand(std::string(command->name),
                                        beside_names(std::string(command->description)));
    verb->callback([&chosen, action = command->add(*verb)] { chosen = action; });
    verb->footer(wrap(fmt::format("Exit codes: {}, 2 the input is wrong.", command->exit_codes),
                      kHelpColumns));
    lay_out(*verb);
  }
  lay_out(app);
  const std::vector<std::string> arguments = normalised(argc, argv);
  try {
    // CLI11 takes them last first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return chosen();
  } catch (const CLI::ParseError& error) {
    return explain(app, error, arguments);
  }
}

}  // namespace
}  // namespace sim::cli

int main(int argc, char** argv) {
  // A closed pipe shows as a failed write, not as a signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return sim::cli::run(argc, argv);
  } catch (const sim::cli::IoError& error) {
    return sim::cli::complain(error.what());
  }
}
