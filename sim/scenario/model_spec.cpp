#include "sim/scenario/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/text.h"
#include "sim/scenario/config_reader.h"
#include "sim/scenario/data_files.h"
#include "sim/scenario/overrides.h"

namespace sim {
namespace {

constexpr std::string_view kConfigFile = "/config.json";

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// lmsys/vicuna-7b-v1.5 -> vicuna-7b-v1.5: how models/ names what the hub calls so.
std::string hub_name(const std::string& name) {
  const std::size_t slash = name.find('/');
  const bool one_slash =
      slash != std::string::npos && name.find('/', slash + 1) == std::string::npos;
  return lower_case(one_slash ? name.substr(slash + 1) : name);
}

bool looks_like_path(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".yaml") || name.starts_with('.') ||
         name.starts_with('/');
}

// The file that `named` means; empty where there is none.
std::string find_config(const Named& named, const std::string& models_root) {
  std::vector<std::string> candidates;
  for (const std::string& name : {named.name, hub_name(named.name)}) {
    if (!is_data_name(name)) continue;
    candidates.push_back(fmt::format("{}/{}{}", models_root, name, kConfigFile));
    candidates.push_back(fmt::format("{}/{}.yaml", models_root, name));
  }
  const std::string beside = path_beside(named.at, named.name);
  candidates.push_back(beside);
  candidates.push_back(beside + std::string(kConfigFile));
  const auto found = std::find_if(candidates.begin(), candidates.end(), file_exists);
  return found == candidates.end() ? "" : *found;
}

// Not what the job loads (job.precision.weights says that), but a word that torch knows.
constexpr Choice<DType> kTorchTypes[] = {
    {"float32", DType::f32}, {"float16", DType::f16}, {"bfloat16", DType::bf16}};

// `architectures[0]`, else `model_type`.
std::optional<Named> find_architecture(ConfigReader& config) {
  if (const ConfigNode* list = config.find_node("architectures")) {
    if (!list->is_sequence() || list->items.empty()) {
      config.diagnostics().error(
          list->at, fmt::format("architectures must be a list of class names, not {}",
                                list->is_sequence() ? "an empty list" : describe(*list)));
      return std::nullopt;
    }
    const ConfigNode& first = list->items.front();
    const auto name = read_value<std::string>(first, {"architectures[0]"}, config.diagnostics());
    return name ? std::optional(Named{*name, first.at}) : std::nullopt;
  }
  if (auto type = config.find_named("model_type")) return type;
  config.diagnostics().error({config.at().file},
                             "the file says neither 'architectures' nor 'model_type'",
                             "a config.json as published by Hugging Face is expected");
  return std::nullopt;
}

}  // namespace

std::vector<std::string> model_names(const std::string& models_root) {
  std::vector<std::string> names = list_data_names(models_root, kConfigFile);
  const std::vector<std::string> written = list_data_names(models_root, ".yaml");
  names.insert(names.end(), written.begin(), written.end());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<ModelSpec> read_model(std::string name, std::shared_ptr<const SourceFile> file,
                                    Diagnostics& diagnostics) {
  std::optional<ConfigNode> root = parse_config(file, diagnostics);
  if (!root) return std::nullopt;
  if (!root->is_map()) {
    diagnostics.error(
        root->at, fmt::format("a model's config must be a map of keys, not {}", describe(*root)));
    return std::nullopt;
  }
  ReadContext context{diagnostics};
  ConfigReader config(*root, "", context);
  std::optional<Named> architecture = find_architecture(config);
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    config.find_choice<DType>(key, kTorchTypes);
  }
  if (!architecture) return std::nullopt;
  return ModelSpec{std::move(name), file->path, std::move(*architecture), std::move(*root)};
}

std::optional<ModelSpec> read_model(const Named& named, const std::string& models_root,
                                    Diagnostics& diagnostics) {
  const std::string path = find_config(named, models_root);
  if (path.empty() && looks_like_path(named.name)) {
    diagnostics.error(named.at, fmt::format("there is no model file {}", in_quotes(named.name)),
                      is_command_line(named.at)
                          ? "a path is taken relative to the current folder"
                          : "a path is taken relative to the folder of this file");
    return std::nullopt;
  }
  if (path.empty()) {
    report_unknown_name("model", {hub_name(named.name), named.at}, model_names(models_root),
                        diagnostics);
    return std::nullopt;
  }
  std::shared_ptr<const SourceFile> file = read_source_file(path, named.at, diagnostics);
  return file ? read_model(named.name, std::move(file), diagnostics) : std::nullopt;
}

}  // namespace sim
