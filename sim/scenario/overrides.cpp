#include "sim/scenario/overrides.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "sim/base/text.h"

namespace sim {
namespace {

constexpr std::string_view kCommandLine = "command line";

void move_to_file(ConfigNode& node, const std::shared_ptr<const SourceFile>& file) {
  node.at.file = file;
  for (ConfigNode& item : node.items) move_to_file(item, file);
  for (ConfigNode::Entry& entry : node.entries) {
    entry.key_at.file = file;
    move_to_file(entry.value, file);
  }
}

// The value alone, at the columns where it stands behind the key.
std::optional<ConfigNode> parse_value(const std::string& key, const std::string& value,
                                      const std::shared_ptr<const SourceFile>& shown,
                                      Diagnostics& diagnostics) {
  if (value.find_first_not_of(' ') == std::string::npos) return ConfigNode{};
  Diagnostics in_padded;
  const std::string padding(count_characters(key) + 1, ' ');
  auto padded = std::make_shared<SourceFile>(SourceFile{shown->path, padding + value});
  std::optional<ConfigNode> node = parse_config(std::move(padded), in_padded);
  for (const Diagnostic& diagnostic : in_padded.all()) {
    Span at = diagnostic.at;
    at.file = shown;
    diagnostics.error(std::move(at), diagnostic.message, diagnostic.hint);
  }
  if (node) move_to_file(*node, shown);
  return node;
}

}  // namespace

bool is_command_line(const Span& at) { return at.file && at.file->path == kCommandLine; }

void lay_over(ConfigNode& root, const Override& override, Diagnostics& diagnostics) {
  const auto& [key, value] = override;
  const auto shown = std::make_shared<SourceFile>(
      SourceFile{std::string(kCommandLine), fmt::format("{}={}", key, value)});
  std::optional<ConfigNode> node = parse_value(key, value, shown, diagnostics);
  if (!node) return;

  ConfigNode* map = &root;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const std::string name = key.substr(begin, end - begin);
    const Span at{shown, 1, static_cast<int>(count_characters(key.substr(0, begin))) + 1,
                  std::max(static_cast<int>(count_characters(name)), 1)};
    if (name.empty()) {
      diagnostics.error(at, "a key is expected here, as in job.micro_batch_size=4");
      return;
    }
    if (map->is_null()) map->kind = ConfigNode::Kind::map;
    if (!map->is_map()) {
      diagnostics.error(at, fmt::format("{} is no map, so it has no {}",
                                        in_quotes(key.substr(0, begin - 1)), in_quotes(name)));
      return;
    }
    ConfigNode* below = nullptr;
    for (ConfigNode::Entry& entry : map->entries) {
      if (entry.key == name) {
        below = &entry.value;
        entry.key_at = end == key.size() ? at : entry.key_at;
      }
    }
    if (!below) {
      map->entries.push_back({name, at, {}});
      below = &map->entries.back().value;
      below->at = at;
    }
    map = below;
    begin = end + 1;
  }
  const Span at = map->at;
  *map = std::move(*node);
  if (map->is_null()) map->at = at;
}

}  // namespace sim
