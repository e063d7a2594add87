#include "sim/base/diagnostics.h"

#include <filesystem>
#include <fstream>

#include "sim/base/text.h"
#include "tests/support/catch.h"

using namespace sim;

namespace {

Span span_of(std::string text, int line, int column, int length = 1) {
  return {std::make_shared<SourceFile>(SourceFile{"a.yaml", std::move(text)}), line, column,
          length};
}

std::string rendered(Span at, std::string message, std::string hint = {}) {
  Diagnostics d;
  d.error(std::move(at), std::move(message), std::move(hint));
  return render(d);
}

}  // namespace

TEST_CASE("a diagnostic shows its line, what is meant, help and related places", "[base]") {
  Diagnostics d;
  Diagnostic& it =
      d.error(span_of("job:\n  recompute_granularty: full\n", 2, 3, 20),
              "unknown key 'recompute_granularty' in job", "did you mean 'recompute_granularity'?");
  it.notes.push_back(
      {Severity::note, span_of("", 19, 28), "num_attention_heads is set here", {}, {}});
  CHECK(d.has_errors());
  CHECK(render(d) ==
        "a.yaml:2:3: error: unknown key 'recompute_granularty' in job\n"
        "    2 |   recompute_granularty: full\n"
        "      |   ^~~~~~~~~~~~~~~~~~~~\n"
        "help: did you mean 'recompute_granularity'?\n"
        "a.yaml:19:28: note: num_attention_heads is set here\n");
}

TEST_CASE("warnings are no errors", "[base]") {
  Diagnostics d;
  d.warning({}, "odd");
  CHECK_FALSE(d.has_errors());
  CHECK(render(d) == "command line: warning: odd\n");
}

TEST_CASE("line 0 blames the whole file", "[base]") {
  CHECK(rendered(span_of("x", 0, 0), "it is empty") == "a.yaml: error: it is empty\n");
}

TEST_CASE("columns count code points, tabs are expanded under the caret", "[base]") {
  CHECK(rendered(span_of("größe: 1\n", 1, 8), "m") ==
        "a.yaml:1:8: error: m\n    1 | größe: 1\n      |        ^\n");
  CHECK(rendered(span_of("\ta:\tb\n", 1, 5), "m") ==
        "a.yaml:1:5: error: m\n    1 |     a:  b\n      |         ^\n");
}

TEST_CASE("control characters and bytes that are not UTF-8 are escaped", "[base]") {
  CHECK(rendered(span_of("a\x1b[31m\xff: 1\r\n", 1, 8), "bad \x1b[2J") ==
        "a.yaml:1:8: error: bad \\x1b[2J\n    1 | a\\x1b[31m\\xff: 1\n      |              ^\n");
  CHECK(printable("\xe2\x80\xae") == "\\u202e");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate is not UTF-8
  CHECK(printable("abcdef", 3) == "abc...");
}

TEST_CASE("a long line is clipped around the caret", "[base]") {
  const std::string line = std::string(500, 'x') + "KEY" + std::string(5000, 'y');
  const std::string text = rendered(span_of(line, 1, 501, 3), "m");
  CHECK(text == "a.yaml:1:501: error: m\n    1 | ..." + std::string(50, 'x') + "KEY" +
                    std::string(44, 'y') + "...\n      |    " + std::string(50, ' ') + "^~~\n");
}

TEST_CASE("an underline stays on its line, a caret past the end is shown", "[base]") {
  CHECK(rendered(span_of("ab", 1, 1, 50), "m") == "a.yaml:1:1: error: m\n    1 | ab\n      | ^~\n");
  CHECK(rendered(span_of("ab", 1, 4), "m") == "a.yaml:1:4: error: m\n    1 | ab\n      |    ^\n");
  CHECK(rendered(span_of("ab", 9, 1), "m") == "a.yaml:9:1: error: m\n    9 |\n      | ^\n");
}

TEST_CASE("a flood of mistakes is cut", "[base]") {
  Diagnostics d;
  for (int i = 0; i < 150; ++i) d.error({}, "m");
  const std::string text = render(d);
  CHECK(text.ends_with("command line: error: m\n... and 50 more\n"));
}

TEST_CASE("the nearest name is one slip away, not another name", "[base]") {
  const std::vector<std::string> names = {"full_shard", "shard_grad_op", "no_shard"};
  CHECK(nearest("full-shard", names) == "full_shard");
  CHECK(nearest("Full_Shrad", names) == "full_shard");
  CHECK(nearest("zero3", names).empty());
  CHECK(nearest("a", {"b"}).empty());
  CHECK(nearest(std::string(100000, 'a'), names).empty());
}

TEST_CASE("an unknown name is answered with the known ones", "[base]") {
  Diagnostics d;
  report_unknown_name("optimizer", {"adamv", {}}, {"adamw", "sgd"}, d);
  CHECK(render(d) ==
        "command line: error: unknown optimizer 'adamv'\nhelp: did you mean 'adamw'? known: adamw, "
        "sgd\n");
}

TEST_CASE("files that cannot be read", "[base]") {
  Diagnostics d;
  CHECK_FALSE(read_source_file("/nonexistent.yaml", {}, d));
  CHECK_FALSE(read_source_file("/", {}, d));
  const auto path = (std::filesystem::temp_directory_path() / "rehearse_size_test.txt").string();
  std::ofstream(path) << "12345";
  CHECK_FALSE(read_source_file(path, {}, d, 4));
  CHECK(read_source_file(path, {}, d, 5)->text == "12345");
  std::filesystem::remove(path);
  CHECK(render(d).starts_with(
      "/nonexistent.yaml: error: cannot read the file: No such file or directory\n"
      "/: error: cannot read the file: it is a directory\n"));
}
