// tests/data/h200/sweep.csv: measured on one H200 with torch 2.11 and transformers 5.17, allocator
// statistics of the eighth step.
#include "sim/study/validate.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

TEST_CASE("memory of decoder layers over batch, length, attention, checkpointing, precision") {
  Diagnostics diagnostics;
  const auto table = read_csv_table("tests/data/h200/sweep.csv", diagnostics);
  REQUIRE(table);
  const auto result = validate(kH200SweepMemory, *table, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(result);
  INFO(to_text(*result));
  CHECK(result->rows == 194);
  CHECK(result->rows_in_table == 194);
  CHECK(result->rows_skipped.empty());
  CHECK(result->mape < 0.005);
  CHECK(result->max_error < 0.02);
}

}  // namespace
}  // namespace sim::study
