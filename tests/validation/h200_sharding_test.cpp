// tests/data/h200/sharding.rank*.csv: measured on two H200 with torch 2.11 and transformers 5.17.
#include "sim/study/validate.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

TEST_CASE("allocated peaks of sharding frameworks, one setting at a time") {
  Diagnostics diagnostics;
  const auto table = read_csv_table("tests/data/h200/sharding.rank0.csv", diagnostics);
  REQUIRE(table);
  const auto result = validate(kH200Sharding, *table, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(result);
  INFO(to_text(*result));
  CHECK(result->rows_in_table == 29);
  CHECK(result->rows >= 6);
  CHECK(result->mape < 0.005);
  CHECK(result->max_error < 0.03);
}

}  // namespace
}  // namespace sim::study
