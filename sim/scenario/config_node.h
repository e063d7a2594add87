// A parsed YAML or JSON document as a tree that knows where everything was written. Scalars stay
// text; config_reader.h converts them. YAML is invisible above this file.
//
// Refused while parsing, each with its place: syntax errors, duplicate keys, merge keys (<<),
// aliases that would blow up, nesting deeper than 64, more than 200,000 values, several documents,
// an empty file, tags, bytes that are no text (UTF-8), files over 1 MiB.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"

namespace sim {

class ConfigNode {
 public:
  enum class Kind { null, scalar, sequence, map };
  struct Entry;  // a key and its value

  Kind kind = Kind::null;
  Span at;                        // of the value
  std::string text;               // scalars: as written, without quotes
  bool quoted = false;            // scalars: "x" or 'x'; a quoted number is a string
  std::vector<ConfigNode> items;  // sequences
  std::vector<Entry> entries;     // maps, in file order

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_map() const { return kind == Kind::map; }
  // nullptr where absent or not a map. `find("a.b")` does not descend: keys are literal.
  const ConfigNode* find(std::string_view key) const;
  const Entry* find_entry(std::string_view key) const;
};

struct ConfigNode::Entry {
  std::string key;
  Span key_at;
  ConfigNode value;
};

// Parses YAML 1.2-style text (JSON included). nullopt and diagnostics where it cannot be read. A
// key set twice is an error, too, but the tree goes on with the first value, so that one run shows
// all mistakes.
std::optional<ConfigNode> parse_config(std::shared_ptr<const SourceFile> file,
                                       Diagnostics& diagnostics);

}  // namespace sim
