// rehearse replay FILE [--set OPTIONS] [--capacity SIZE] [--json]
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/diagnostics.h"
#include "sim/base/units_text.h"
#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/study/replay.h"
#include "sim/timeline/read_allocator_log.h"

namespace sim::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set, capacity;  // one value where the option is given
  bool json = false;
};

// The value of a command-line option as a source, so that a complaint can point into it.
Span place_of(const std::string& option, const std::string& value) {
  auto source = std::make_shared<SourceFile>();
  source->path = option;
  source->text = value;
  return {std::move(source), 1, 1, static_cast<int>(value.size())};
}

nlohmann::ordered_json to_json(const study::ReplayResult& result) {
  nlohmann::ordered_json json;
  json["operations"] = result.operations;
  json["differences"] = nullptr;
  if (!result.what_if) json["differences"] = result.differences;
  json["first_difference"] = nullptr;
  if (result.first_difference) {
    const study::ReplayDifference& first = *result.first_difference;
    json["first_difference"] = {{"operation", first.operation},
                                {"what", first.what},
                                {"expected", first.expected},
                                {"got", first.got}};
  }
  json["peak_allocated_bytes"] = result.peak_allocated.count;
  json["peak_reserved_bytes"] = result.peak_reserved.count;
  json["end_allocated_bytes"] = result.end_allocated.count;
  json["end_reserved_bytes"] = result.end_reserved.count;
  json["limit_bytes"] = nullptr;
  if (result.limit) json["limit_bytes"] = result.limit->count;
  json["ooms"] = result.ooms;
  json["alloc_retries"] = result.alloc_retries;
  json["what_if"] = result.what_if;
  json["name"] = result.name;
  json["torch"] = result.release;
  json["settings"] = result.settings;
  json["first_ooms"] = nlohmann::ordered_json::array();
  for (const study::ReplayOom& oom : result.first_ooms) {
    json["first_ooms"].push_back({{"operation", oom.operation}, {"message", oom.message}});
  }
  json["notes"] = result.notes;
  return json;
}

int run(const Options& options) {
  Diagnostics diagnostics;
  study::ReplayOptions replay;
  if (!options.set.empty()) {
    replay.set = Named{options.set.front(), place_of("--set", options.set.front())};
    if (options.set.front().empty()) diagnostics.error(replay.set->at, "no option given");
  }
  if (!options.capacity.empty()) {
    replay.capacity = parse_bytes(options.capacity.front());
    if (!replay.capacity || replay.capacity->count <= 0) {
      diagnostics.error(place_of("--capacity", options.capacity.front()),
                        "a size with its unit expected, for example 40GiB");
    }
  }
  const auto log = read_allocator_log(options.file, diagnostics);
  if (!log || diagnostics.has_errors()) return refuse(diagnostics);
  const auto result = study::replay(*log, replay, diagnostics);
  if (!result) return refuse(diagnostics);
  if (options.json) {
    const std::string text =
        to_json(*result).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    write_result(text + "\n");
  } else {
    write_result(study::to_text(*result));
  }
  return result->what_if ? (result->ooms == 0 ? 0 : 1) : (result->differences == 0 ? 0 : 1);
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->file, "recording: .jsonl or .events.csv, plain or gzip")
      ->required();
  app.add_option("--set", options->set,
                 "what if: allocator options on top of the recorded ones, for example "
                 "expandable_segments:True,max_split_size_mb=64")
      ->expected(1);
  app.add_option("--capacity", options->capacity,
                 "what if: the memory that the driver can give the process, for example 40GiB")
      ->expected(1);
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace

const Command kReplay{"replay",
                      "replay a recorded PyTorch allocator log through the emulator, exactly or "
                      "under other settings",
                      "0 all agrees with the recording (a what-if: the run fits), 1 it does not",
                      add};

}  // namespace sim::cli
