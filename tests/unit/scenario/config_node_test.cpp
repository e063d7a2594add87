#include "sim/scenario/config_node.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

using namespace sim;

namespace {

std::optional<ConfigNode> parse(std::string text, Diagnostics& d) {
  return parse_config(std::make_shared<SourceFile>(SourceFile{"a.yaml", std::move(text)}), d);
}

ConfigNode parsed(std::string text) {
  Diagnostics d;
  auto node = parse(std::move(text), d);
  INFO(render(d));
  REQUIRE(node);
  return std::move(*node);
}

std::string refusal(std::string text) {
  Diagnostics d;
  parse(std::move(text), d);
  REQUIRE_FALSE(d.all().empty());
  return d.all().front().message;
}

std::string place(const Span& at) {
  return std::to_string(at.line) + ":" + std::to_string(at.column) + "+" +
         std::to_string(at.length);
}

}  // namespace

TEST_CASE("scalars stay as written", "[scenario]") {
  const ConfigNode root =
      parsed("octal: 010\nversion: 2.10\nyes: yes\nquoted: \"7\"\nempty:\ntilde: ~\n");
  CHECK(root.find("octal")->text == "010");
  CHECK(root.find("version")->text == "2.10");
  CHECK(root.find("yes")->text == "yes");
  CHECK(root.find("quoted")->quoted);
  CHECK_FALSE(root.find("octal")->quoted);
  CHECK(root.find("empty")->is_null());
  CHECK(root.find("tilde")->is_null());
  CHECK(root.find("absent") == nullptr);
  CHECK(root.items.empty());
}

TEST_CASE("everything knows where it stands", "[scenario]") {
  const ConfigNode root = parsed("größe: \"ö x\" # c\njob:\n  - {a: b}\n  -\n");
  CHECK(place(root.find_entry("größe")->key_at) == "1:1+5");
  CHECK(place(root.find("größe")->at) == "1:8+5");
  const ConfigNode& list = *root.find("job");
  CHECK(place(list.items[0].at) == "3:5+1");
  CHECK(place(list.items[0].find("a")->at) == "3:9+1");
  CHECK(list.items[1].is_null());
}

TEST_CASE("an empty value is blamed on its key", "[scenario]") {
  const ConfigNode root = parsed("a:\nb: 1\n");
  CHECK(place(root.find("a")->at) == "1:1+1");
}

TEST_CASE("JSON is read with tabs, escapes and a byte order mark", "[scenario]") {
  const ConfigNode root = parsed("\xef\xbb\xbf{\n\t\"a\": [1, \"\\u00e9\\/\"],\n\t\"b\": {}\n}\n");
  CHECK(root.find("a")->items[1].text == "\xc3\xa9/");
  CHECK(root.find("b")->is_map());
  CHECK(place(root.find("a")->items[0].at) == "2:8+1");
}

TEST_CASE("an alias is a copy of what it names", "[scenario]") {
  const ConfigNode root = parsed("a: &x {n: 1}\nb: *x\n");
  CHECK(root.find("b")->find("n")->text == "1");
  CHECK(place(root.find("b")->find("n")->at) == "1:11+1");
}

TEST_CASE("what YAML would let pass is refused", "[scenario]") {
  CHECK(refusal("a: 1\na: 2\n") == "the key 'a' is set twice");
  CHECK(refusal("<<: {a: 1}\n") == "merge keys (<<) are not supported");
  CHECK(refusal("a: 1\n---\nb: 1\n") == "a second document starts here");
  CHECK(refusal("a: \"x\n") == "this quote is never closed");
  CHECK(refusal("[a]: 1\n") == "a key is expected here, as in 'key: value'");
  CHECK(refusal("~: 1\n") == "a key is expected here, as in 'key: value'");
  CHECK(refusal("a: !!python/object 1\n").starts_with("the tag"));
  CHECK(refusal("&a [*a]\n") == "this alias stands inside what it refers to");
}

TEST_CASE("all duplicates of a file are named in one run", "[scenario]") {
  Diagnostics d;
  const auto root = parse("a: 1\na: 2\nb: {c: 1, c: 2}\n", d);
  CHECK(d.error_count() == 2);
  REQUIRE(root);  // goes on with the first values
  CHECK(root->find("a")->text == "1");
}

TEST_CASE("limits hold before memory or stack run out", "[scenario]") {
  CHECK(refusal(std::string(100'000, '[')) == "nested deeper than 64 levels");
  CHECK(refusal("[[1, 2") == "this '[' is never closed");
  std::string deep = "a: ";
  for (int i = 0; i < 70; ++i) deep += "[";
  CHECK(refusal(deep + std::string(70, ']')) == "nested deeper than 64 levels");
  std::string block;
  for (int i = 0; i < 70; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "k:\n";
  CHECK(refusal(block) == "nested deeper than 64 levels");
  CHECK(refusal("a: [" + std::string(600'000, ',') + "]").size() > 0);
  CHECK(refusal(std::string(2 << 20, 'a')) == "the file is larger than 1,048,576 bytes");
  std::string aliases = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 20; ++i) {
    const std::vector<std::string> ten(10, fmt::format("*a{}", i - 1));
    aliases += fmt::format("a{0}: &a{0} [{1}]\n", i, fmt::join(ten, ", "));
  }
  CHECK(refusal(aliases) == "the file holds more than 200,000 values");
}

TEST_CASE("nesting counts through aliases", "[scenario]") {
  std::string text = "a: &a " + std::string(40, '[') + std::string(40, ']') + "\nb: ";
  CHECK(refusal(text + std::string(40, '[') + "*a" + std::string(40, ']') + "\n") ==
        "nested deeper than 64 levels");
}

TEST_CASE("every prefix and every one-byte change of a file is read or refused", "[scenario]") {
  const std::string text =
      "a: {b: [1, \"x\\n\"], c: 'it''s'}\nd: &x\n  - e: |\n      t\n    f: *x\n# c\n";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    Diagnostics d;
    const auto node = parse(text.substr(0, i), d);
    CHECK(node.has_value() != d.has_errors());
    for (const char c : std::string("\0\t\n{[]}:,'\"&*!|>%@-?#\xff", 22)) {
      if (i == text.size()) continue;
      std::string changed = text;
      changed[i] = c;
      Diagnostics of_changed;
      const auto other = parse(changed, of_changed);
      CHECK(other.has_value() != of_changed.has_errors());
      CHECK(render(of_changed).size() < 10'000);
    }
  }
}
