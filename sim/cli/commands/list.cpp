// rehearse list [KIND]: everything that can be named in a scenario or on the command line.
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/compute/kernel.h"
#include "sim/network/collective_timer.h"
#include "sim/plan/architectures/architecture.h"
#include "sim/plan/operators/operators.h"
#include "sim/program/libraries/facts.h"
#include "sim/program/optimizers/optimizer.h"
#include "sim/program/strategy.h"
#include "sim/program/trainers/trainer.h"
#include "sim/report/writers/writer.h"
#include "sim/scenario/data_files.h"
#include "sim/scenario/scenario.h"
#include "sim/study/validation/validation_set.h"

namespace sim::cli {
namespace {

struct Item {
  std::string name, description;
};

template <class Entry>
std::vector<Item> items(const Catalog<Entry>& catalog) {
  std::vector<Item> all;
  for (const Entry* entry : catalog.entries()) {
    all.push_back({std::string(entry->name), std::string(entry->description)});
  }
  return all;
}

std::vector<Item> items(const std::vector<std::string>& names) {
  std::vector<Item> all;
  all.reserve(names.size());
  for (const std::string& name : names) all.push_back({name, ""});
  return all;
}

// Each model with its architecture, and whether that can be simulated.
std::vector<Item> models(const DataRoots& roots) {
  std::vector<Item> all;
  for (const std::string& name : model_names(roots.models)) {
    Diagnostics unread;  // a scenario that names it says what is wrong with it
    const auto model = read_model({name, {}}, roots.models, unread);
    std::string architecture = model ? model->architecture.name : "cannot be read";
    if (model && plan::architecture_catalog().find(architecture) == nullptr) {
      architecture += " (known: no architecture yet)";
    }
    all.push_back({name, std::move(architecture)});
  }
  return all;
}

struct Kind {
  std::string_view name;
  std::vector<Item> (*items)(const DataRoots& roots);
};

constexpr Kind kKinds[] = {
    {"models", models},
    {"gpus",
     [](const DataRoots& roots) {
       return items(list_data_names(roots.hardware + "/gpus", ".yaml"));
     }},
    {"nodes",
     [](const DataRoots& roots) {
       return items(list_data_names(roots.hardware + "/nodes", ".yaml"));
     }},
    {"architectures", [](const DataRoots&) { return items(plan::architecture_catalog()); }},
    {"trainers", [](const DataRoots&) { return items(program::trainer_catalog()); }},
    {"frameworks", [](const DataRoots&) { return items(program::framework_catalog()); }},
    {"optimizers", [](const DataRoots&) { return items(program::optimizer_catalog()); }},
    {"libraries", [](const DataRoots&) { return items(program::library_catalog()); }},
    {"operators", [](const DataRoots&) { return items(plan::operator_catalog()); }},
    {"kernels", [](const DataRoots&) { return items(compute::kernel_catalog()); }},
    {"collectives", [](const DataRoots&) { return items(network::collective_catalog()); }},
    {"formats", [](const DataRoots&) { return items(report::writer_catalog()); }},
    {"validation-sets", [](const DataRoots&) { return items(study::validation_catalog()); }},
    {"commands", [](const DataRoots&) { return items(command_catalog()); }},
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

struct Options {
  std::string kind, output;
  bool json = false;
};

std::string as_json(const std::vector<std::pair<std::string, std::vector<Item>>>& lists) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [kind, list] : lists) {
    json[kind] = nlohmann::ordered_json::array();
    for (const Item& item : list) {
      json[kind].push_back({{"name", item.name}, {"description", item.description}});
    }
  }
  return json.dump(2) + "\n";
}

std::string as_text(const std::vector<std::pair<std::string, std::vector<Item>>>& lists) {
  std::string text;
  for (const auto& [kind, list] : lists) {
    if (lists.size() > 1) text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", kind);
    std::size_t width = 0;
    for (const Item& item : list) width = std::max(width, item.name.size());
    const int indent = lists.size() > 1 ? 2 : 0;
    for (const Item& item : list) {
      text += item.description.empty() ? fmt::format("{:{}}{}\n", "", indent, item.name)
                                       : fmt::format("{:{}}{:<{}}  {}\n", "", indent, item.name,
                                                     width, item.description);
    }
  }
  return text;
}

int print(const Options& options) {
  const DataRoots roots = default_data_roots();
  std::vector<std::pair<std::string, std::vector<Item>>> lists;
  for (const Kind& kind : kKinds) {
    if (!options.kind.empty() && options.kind != kind.name) continue;
    lists.emplace_back(kind.name, kind.items(roots));
  }
  if (lists.empty()) {
    Diagnostics diagnostics;
    report_unknown_name("kind of thing to list", {options.kind, {}}, kind_names(), diagnostics);
    return refuse(diagnostics);
  }
  write_result(options.json ? as_json(lists) : as_text(lists), options.output);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("kind", options->kind,
                 "models, gpus, nodes, architectures, ...; all of them if absent");
  app.add_flag("--json", options->json, "one JSON object");
  app.add_option("-o,--output", options->output, "write the result to FILE")->type_name("FILE");
  return [options] { return print(*options); };
}

}  // namespace

const Command kList{"list", "list models, hardware, architectures, commands, ...", kPrinted, add};

}  // namespace sim::cli
