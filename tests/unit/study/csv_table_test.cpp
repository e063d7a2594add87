#include <memory>

#include "sim/study/csv_table.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

std::optional<CsvTable> read(const std::string& text, Diagnostics& diagnostics) {
  return read_csv_table(std::make_shared<SourceFile>(SourceFile{"t.csv", text}), diagnostics);
}

TEST_CASE("cells are found by column, quoted or not") {
  Diagnostics diagnostics;
  const auto table = read("a,b,c\r\n1,\"x, \"\"y\"\"\",2.5\n\n-3\n", diagnostics);
  REQUIRE(table);
  REQUIRE(table->rows.size() == 2);
  const CsvRow first(*table, table->rows[0]), second(*table, table->rows[1]);
  CHECK(first.text("b") == "x, \"y\"");
  CHECK(first.number("c") == 2.5);
  CHECK(second.at().line == 4);
  CHECK(second.number("a") == -3);
  CHECK(second.text("c").empty());
  CHECK(first.text("d").empty());
}

TEST_CASE("a number is a whole finite cell") {
  Diagnostics diagnostics;
  const auto table = read("a,b,c\n1x,nan,\n", diagnostics);
  REQUIRE(table);
  const CsvRow row(*table, table->rows[0]);
  CHECK_FALSE(row.number("a"));
  CHECK_FALSE(row.number("b"));
  CHECK_FALSE(row.number("c"));
}

TEST_CASE("what is wrong with a table is said at its line") {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "t.csv: error: the file is empty"},
           {"a,b,a\n", "t.csv:1:1: error: there are two columns 'a'"},
           {"a,b\n1,2\n1,2,3\n", "t.csv:3:1: error: this row has 3 cells under 2 columns"},
           {"a\n\"1\n", "t.csv:2:1: error: this row leaves a quote open"}}) {
    Diagnostics diagnostics;
    CHECK_FALSE(read(text, diagnostics));
    INFO(render(diagnostics));
    CHECK(render(diagnostics).find(message) != std::string::npos);
  }
}

}  // namespace
}  // namespace sim::study
