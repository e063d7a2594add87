#include "sim/scenario/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.h"

namespace sim {
namespace {

const ConfigNode& empty_map() {
  static const ConfigNode node = [] {
    ConfigNode map;
    map.kind = ConfigNode::Kind::map;
    return map;
  }();
  return node;
}

// " in job", or nothing at the top of the file.
std::string within(const std::string& path) {
  return path.empty() ? "" : fmt::format(" in {}", path);
}

}  // namespace

ConfigReader::ConfigReader(const ConfigNode& node, std::string path, ReadContext& context)
    : map_(&node),
      is_map_(node.is_map() || node.is_null()),
      at_(node.at),
      path_(std::move(path)),
      context_(&context) {
  if (node.is_map()) return;
  if (!is_map_) {
    context.diagnostics.error(
        node.at, fmt::format("{} must be a map of keys, not {}", path_.empty() ? "the file" : path_,
                             describe(node)));
  }
  map_ = &empty_map();
}

std::string ConfigReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const ConfigNode* ConfigReader::find_node(std::string_view key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
    asked_.emplace_back(key);
    if (context_->keys) context_->keys->insert(path_of(key));
  }
  const ConfigNode* node = map_->find(key);
  return node && !node->is_null() ? node : nullptr;
}

ConfigReader ConfigReader::section(std::string_view key) {
  const ConfigNode* node = find_node(key);
  ConfigReader reader(node ? *node : empty_map(), path_of(key), *context_);
  if (!node) reader.at_ = at_;
  return reader;
}

std::optional<Named> ConfigReader::find_named(std::string_view key) {
  const auto word = find<std::string>(key);
  if (!word) return std::nullopt;
  return Named{word->value, word->at};
}

Named ConfigReader::required_named(std::string_view key) {
  const auto word = required<std::string>(key);
  return {word.value, word.at};
}

Named ConfigReader::optional_named(std::string_view key, std::string fallback, std::string why) {
  const auto word = optional<std::string>(key, std::move(fallback), std::move(why));
  return {word.value, word.at};
}

void ConfigReader::assume(std::string_view key, std::string value, std::string why) {
  if (context_->assumptions) {
    context_->assumptions->add(path_of(key), std::move(value), std::move(why));
  }
}

void ConfigReader::report_missing(std::string_view key) {
  if (!is_map_) return;
  context_->diagnostics.error(at_, fmt::format("the key '{}' is missing{}", key, within(path_)));
}

void ConfigReader::report_unknown_word(std::string_view key, const Located<std::string>& word,
                                       const std::vector<std::string>& words) {
  const std::string near = nearest(word.value, words);
  context_->diagnostics.error(
      word.at, fmt::format("{} cannot be {}", path_of(key), in_quotes(word.value)),
      fmt::format("{}possible: {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                  join(words)));
}

void ConfigReader::finish() {
  std::vector<std::string> known = asked_;
  std::sort(known.begin(), known.end());
  for (const ConfigNode::Entry& entry : map_->entries) {
    if (std::binary_search(known.begin(), known.end(), entry.key)) continue;
    const std::string near = nearest(entry.key, known);
    const bool glued = entry.value.is_null() && entry.key.find(':') != std::string::npos;
    context_->diagnostics.error(
        entry.key_at, fmt::format("unknown key {}{}", in_quotes(entry.key), within(path_)),
        glued          ? "write a blank after ':'"
        : near.empty() ? "known: " + join(known)
                       : fmt::format("did you mean '{}'?", near));
  }
}

}  // namespace sim
