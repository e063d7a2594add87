#include "sim/scenario/config_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <map>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include "sim/base/text.h"

namespace sim {
namespace {

// yaml-cpp holds about 150 bytes for each byte of dense JSON; files that people write are far
// smaller.
constexpr std::size_t kMostBytes = 1u << 20;
constexpr std::size_t kMostNodes = 200'000;  // aliases expanded
constexpr int kMostNesting = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr std::string_view kWriteAlike =
    "look for a missing ':' or another indentation just above; quote a value that contains ': '";

// Thrown from within yaml-cpp's parser once a diagnostic is filed.
struct Refused {};

// Byte offsets of one text to spans. Offsets come nearly in order, so the last answer is the start
// of the next search; a file that is one long line stays linear.
class Locator {
 public:
  explicit Locator(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {}

  Span at(std::size_t offset, int length = 1) {
    const std::string_view text = file_->text;
    offset = std::min(offset, text.size());
    if (offset < offset_) *this = Locator(file_);
    for (; offset_ < offset; ++offset_) {
      if (text[offset_] == '\n') {
        ++line_;
        column_ = 1;
      } else if ((text[offset_] & 0xc0) != 0x80) {
        ++column_;
      }
    }
    // A column is that of the character, wherever in it the offset points.
    return {file_, line_, column_, std::max(length, 1)};
  }

 private:
  std::shared_ptr<const SourceFile> file_;
  std::size_t offset_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// The quote that closes the one at the start of `text`; npos = none.
std::size_t find_closing_quote(std::string_view text) {
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 == text.size() || text[i + 1] != quote) return i;
      ++i;  // '' inside '...' is one quote
    }
  }
  return std::string_view::npos;
}

// The brackets of the flow text at `begin` that are open when the text ends, outermost first.
std::vector<std::size_t> find_unclosed_brackets(std::string_view text, std::size_t begin) {
  std::vector<std::size_t> open;
  if (begin >= text.size() || (text[begin] != '{' && text[begin] != '[')) return open;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') open.push_back(i);
    if (c == '}' || c == ']') open.pop_back();
    if (open.empty()) return open;
    if (c != '"' && c != '\'') continue;
    const std::size_t closing = find_closing_quote(text.substr(i));
    if (closing == std::string_view::npos) break;
    i += closing;
  }
  return open;
}

// Builds the tree from yaml-cpp's events, so that what yaml-cpp's own tree would forget or accept
// (duplicate keys, places of keys, quotes) can be kept or refused.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const SourceFile> file, std::size_t skipped, Diagnostics& diagnostics)
      : file_(std::move(file)), skipped_(skipped), locator_(file_), diagnostics_(diagnostics) {}

  ConfigNode take_root() { return std::move(root_); }
  std::size_t offset(const YAML::Mark& mark) const {
    return skipped_ + static_cast<std::size_t>(std::max(mark.pos, 0));
  }
  Span span(const YAML::Mark& mark, int length = 1) { return locator_.at(offset(mark), length); }

  Span span_at(std::size_t offset) { return locator_.at(offset); }

  // Where the text ends inside brackets: blames the innermost. False where it does not.
  bool report_open_bracket() { return !open_.empty() && report_never_closed(open_.back().begin); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    if (!rest_of_text(mark).starts_with("---")) {
      refuse(span(mark), "this line does not fit what stands above", std::string(kWriteAlike));
    }
    refuse(span(mark), "a second document starts here", "keep one document in a file");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::string_view rest = rest_of_text(mark);
    const bool tilde = rest.starts_with('~');
    const bool written =
        tilde || rest.starts_with("null") || rest.starts_with("Null") || rest.starts_with("NULL");
    refuse_as_key(offset(mark));
    ConfigNode node;
    node.at = span(mark, tilde || !written ? 1 : 4);
    // The mark of an empty value is that of whatever follows; its key says better where it is
    // missing.
    if (!written && !open_.empty() && open_.back().key) node.at = open_.back().key_at;
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    ConfigNode node;
    node.kind = ConfigNode::Kind::scalar;
    node.quoted = tag == "!";
    node.at = span(mark, written_length(mark, value, node.quoted));
    node.text = value;
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) refuse(span(mark), "this alias stands inside what it refers to");
    nodes_ += found->second.nodes;
    if (found->second.height + static_cast<int>(open_.size()) > kMostNesting)
      refuse_nesting(span(mark));
    add(ConfigNode(found->second.node), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(ConfigNode::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(ConfigNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  // A sequence or map whose end has not come yet.
  struct Open {
    ConfigNode node;
    std::size_t begin = 0;  // offset of its bracket or first word
    YAML::anchor_t anchor = 0;
    std::size_t nodes_before = 0;
    int height = 0;                  // of what it holds
    std::optional<std::string> key;  // read, but its value has not come
    Span key_at;
    std::unordered_map<std::string, Span> keys;
  };
  struct Anchored {
    ConfigNode node;
    std::size_t nodes = 0;
    int height = 0;
  };

  [[noreturn]] void refuse(Span at, std::string message, std::string hint = {}) {
    diagnostics_.error(std::move(at), std::move(message), std::move(hint));
    throw Refused{};
  }
  [[noreturn]] void refuse_nesting(Span at) {
    refuse(std::move(at), fmt::format("nested deeper than {} levels", kMostNesting));
  }

  bool report_never_closed(std::size_t bracket) {
    if (bracket >= file_->text.size()) return false;
    const char c = file_->text[bracket];
    if (c != '{' && c != '[') return false;
    diagnostics_.error(locator_.at(bracket), fmt::format("this '{}' is never closed", c),
                       "a closing bracket or a ',' is missing");
    return true;
  }

  std::string_view rest_of_text(const YAML::Mark& mark) const {
    return std::string_view(file_->text).substr(std::min(offset(mark), file_->text.size()));
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    refuse(span(mark), fmt::format("the tag {} has no meaning here", in_quotes(tag)),
           "quote a value to make it a string");
  }

  // Characters that a scalar takes on its first line, quotes included. yaml-cpp accepts a quoted
  // text that is never closed if the file ends in a line break.
  int written_length(const YAML::Mark& mark, const std::string& value, bool quoted) {
    std::string_view written = value;
    const std::string_view rest = rest_of_text(mark);
    if (quoted && (rest.starts_with('"') || rest.starts_with('\''))) {
      const std::size_t closing = find_closing_quote(rest);
      if (closing == std::string_view::npos) refuse(span(mark), "this quote is never closed");
      written = rest.substr(0, closing + 1);
    }
    return static_cast<int>(count_characters(written.substr(0, written.find('\n'))));
  }

  void begin(ConfigNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    refuse_as_key(offset(mark));
    if (open_.size() >= kMostNesting) refuse_nesting(span(mark));
    Open level;
    level.node.kind = kind;
    level.node.at = span(mark);
    level.begin = offset(mark);
    level.anchor = anchor;
    level.nodes_before = nodes_;
    open_.push_back(std::move(level));
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    const int height = done.height + 1;
    if (!open_.empty()) open_.back().height = std::max(open_.back().height, height);
    if (done.anchor != 0) anchored_[done.anchor] = {done.node, nodes_ - done.nodes_before, height};
    add(std::move(done.node), 0);
  }

  bool key_is_due() const {
    return !open_.empty() && open_.back().node.is_map() && !open_.back().key;
  }
  // A list, a map or nothing where a key should stand. An unclosed bracket looks like that, too.
  void refuse_as_key(std::size_t begin) {
    if (!key_is_due()) return;
    const std::vector<std::size_t> unclosed = find_unclosed_brackets(file_->text, begin);
    if (open_.size() + unclosed.size() > kMostNesting) {
      refuse_nesting(locator_.at(unclosed[kMostNesting - open_.size()]));
    }
    if (!unclosed.empty() && report_never_closed(unclosed.back())) throw Refused{};
    refuse(locator_.at(begin), "a key is expected here, as in 'key: value'");
  }

  void add(ConfigNode node, YAML::anchor_t anchor) {
    if (++nodes_ > kMostNodes) {
      refuse(node.at, fmt::format("the file holds more than {} values",
                                  group_digits(static_cast<std::int64_t>(kMostNodes))));
    }
    if (anchor != 0) anchored_[anchor] = {node, 1, 0};
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_sequence()) {
      open_.back().node.items.push_back(std::move(node));
    } else if (!open_.back().key) {
      open_.back().key = std::move(node.text);
      open_.back().key_at = std::move(node.at);
    } else {
      add_entry(open_.back(), std::move(node));
    }
  }

  void add_entry(Open& map, ConfigNode value) {
    std::string key = std::move(*map.key);
    map.key.reset();
    if (key == "<<") {
      refuse(map.key_at, "merge keys (<<) are not supported", "write the keys out");
    }
    const auto [first, is_new] = map.keys.emplace(key, map.key_at);
    if (!is_new) {
      Diagnostic& error =
          diagnostics_.error(map.key_at, fmt::format("the key {} is set twice", in_quotes(key)));
      error.notes.push_back({Severity::note, first->second, "it is first set here", {}, {}});
      return;
    }
    map.node.entries.push_back({std::move(key), map.key_at, std::move(value)});
  }

  std::shared_ptr<const SourceFile> file_;
  std::size_t skipped_;
  Locator locator_;
  Diagnostics& diagnostics_;
  ConfigNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// yaml-cpp reads streams; this one reads a text in place.
class TextBuffer : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // setg wants it; a get area is never written
    setg(begin, begin, begin + text.size());
  }
};

// What yaml-cpp would read as something else than is written: anything that is not printable UTF-8.
bool check_characters(const std::shared_ptr<const SourceFile>& file, Diagnostics& diagnostics) {
  const std::string_view text = file->text;
  if (text.size() > kMostBytes) {
    diagnostics.error({file}, fmt::format("the file is larger than {} bytes",
                                          group_digits(static_cast<std::int64_t>(kMostBytes))));
    return false;
  }
  const std::size_t invalid = find_invalid_utf8(text);
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
  });
  const std::size_t at =
      std::min(invalid, control == text.end() ? std::string_view::npos
                                              : static_cast<std::size_t>(control - text.begin()));
  if (at == std::string_view::npos) return true;
  diagnostics.error(
      Locator(file).at(at),
      fmt::format("this is not a text file: byte 0x{:02x}", static_cast<unsigned char>(text[at])),
      "a YAML or JSON file in UTF-8 is expected");
  return false;
}

// yaml-cpp's words are for its authors; the common mistakes get ours.
struct SyntaxMessage {
  std::string_view contains;
  std::string_view message;
  std::string_view hint;
  bool may_be_tab = false;  // yaml-cpp says the same where a tab spoils the indentation
};
constexpr SyntaxMessage kSyntaxMessages[] = {
    {"end of map flow", "a '}' or a ',' is missing here", ""},
    {"end of sequence flow", "a ']' or a ',' is missing here", ""},
    {"illegal EOF in scalar", "the file ends inside a quoted text", "a closing quote is missing"},
    {"invalid unicode", "this escape is no character",
     "write a character beyond \\uffff as itself, not as a pair of \\u escapes"},
    {"illegal map value", "no ':' can stand here", kWriteAlike, true},
    {"illegal block entry", "no list item can start here", kWriteAlike, true},
    {"end of map not found", "this line does not fit the map above", kWriteAlike, true},
    {"end of sequence not found", "this line does not fit the list above", kWriteAlike, true},
    {"illegal flow end", "a closing bracket without its opening one", ""},
    {"illegal tab", "a tab in the indentation", "indent with blanks"},
    {"unknown token", "no value can start like this", "quote a value that starts with @, ` or %",
     true},
    {"anchor is not defined", "this alias (*) names nothing", "quote a value that starts with *"},
    {"alias not found", "this alias (*) names nothing", "quote a value that starts with *"},
};

// The tab before the first word of the line around `offset`; npos = none.
std::size_t find_indentation_tab(std::string_view text, std::size_t offset) {
  const std::size_t line = offset == 0 ? 0 : text.rfind('\n', offset - 1) + 1;
  const std::size_t first = text.find_first_not_of(' ', line);
  const bool tab = first != std::string_view::npos && first <= offset && text[first] == '\t';
  return tab ? first : std::string_view::npos;
}

void report_syntax(const YAML::Exception& error, TreeBuilder& builder, const SourceFile& file,
                   Diagnostics& diagnostics) {
  const std::size_t offset = builder.offset(error.mark);
  const auto contained = [&](const SyntaxMessage& known) {
    return error.msg.find(known.contains) != std::string::npos;
  };
  const auto known =
      std::find_if(std::begin(kSyntaxMessages), std::end(kSyntaxMessages), contained);
  const std::size_t tab = find_indentation_tab(file.text, offset);
  if (known == std::end(kSyntaxMessages)) {
    diagnostics.error(builder.span(error.mark), error.msg);
  } else if (known->may_be_tab && tab != std::string_view::npos) {
    diagnostics.error(builder.span_at(tab), "a tab in the indentation", "indent with blanks");
  } else if (file.text.find_first_not_of(" \r\n", offset) == std::string::npos &&
             builder.report_open_bracket()) {
    return;
  } else {
    const bool glued = offset > 0 && offset < file.text.size() && file.text[offset - 1] == ':' &&
                       (file.text[offset] == '{' || file.text[offset] == '[');
    diagnostics.error(builder.span(error.mark), std::string(known->message),
                      glued ? "write a blank after ':'" : std::string(known->hint));
  }
}

}  // namespace

const ConfigNode::Entry* ConfigNode::find_entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const ConfigNode* ConfigNode::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry ? &entry->value : nullptr;
}

std::optional<ConfigNode> parse_config(std::shared_ptr<const SourceFile> file,
                                       Diagnostics& diagnostics) {
  if (!check_characters(file, diagnostics)) return std::nullopt;
  std::string_view text = file->text;
  const std::size_t skipped = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  TextBuffer buffer(text.substr(skipped));
  std::istream in(&buffer);

  TreeBuilder builder(file, skipped, diagnostics);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) {
      diagnostics.error({file}, "the file is empty");
      return std::nullopt;
    }
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    report_syntax(error, builder, *file, diagnostics);
    return std::nullopt;
  } catch (const std::exception& error) {
    diagnostics.error({file}, fmt::format("cannot be parsed: {}", error.what()));
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace sim
