#include <memory>

#include "sim/study/validate.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

const std::string kHeader =
    "arch,layers,batch,seq,attention,checkpointing,mode,params,after_forward,"
    "peak_forward_backward\n";

std::optional<Validation> run(const std::string& text, Diagnostics& diagnostics) {
  const auto table =
      read_csv_table(std::make_shared<SourceFile>(SourceFile{"t.csv", text}), diagnostics);
  REQUIRE(table);
  return validate(kH200SweepMemory, *table, diagnostics);
}

// The simulator's own figures for one row, as a table would state them.
double simulated(std::size_t column) {
  Diagnostics diagnostics;
  const auto result = run(kHeader + "7b,2,1,512,sdpa,False,bf16,1,1,1\n", diagnostics);
  REQUIRE(result);
  return result->figures.at(column).simulated.value();
}

TEST_CASE("errors are fractions of the measured figure, signed in the bias") {
  const auto quarter_more = [](double figure) { return std::to_string(figure * 1.25); };
  Diagnostics diagnostics;
  const auto result = run(kHeader + "7b,2,1,512,sdpa,False,bf16,1," + quarter_more(simulated(0)) +
                              "," + std::to_string(simulated(1)) + "\n",
                          diagnostics);
  REQUIRE(result);
  CHECK(result->rows == 1);
  CHECK(result->max_error == Approx(0.2));
  CHECK(result->mape == Approx(0.1));
  CHECK(result->bias == Approx(-0.1));
}

TEST_CASE("a run that ends early is wholly wrong, not skipped") {
  Diagnostics diagnostics;
  const auto result = run(kHeader + "70b,60,8,16384,eager,False,bf16,1,5e9,5e9\n", diagnostics);
  REQUIRE(result);
  CHECK(result->rows == 1);
  CHECK_FALSE(result->figures[0].simulated);
  CHECK(result->mape == 1);
}

TEST_CASE("rows are skipped by reason and counted") {
  Diagnostics diagnostics;
  const auto result = run(kHeader +
                              "7b,2,1,512,sdpa,False,bf16,1,5e9,5e9\n"
                              "70b,4,1,16384,eager,False,bf16,oom,CUDA out of memory\n",
                          diagnostics);
  REQUIRE(result);
  CHECK(result->rows == 1);
  CHECK(result->rows_in_table == 2);
  CHECK(result->rows_skipped ==
        std::map<std::string, std::int64_t>{{"the measured run ran out of memory", 1}});
}

TEST_CASE("a table of another form is refused where it differs") {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"arch,layers\n", "t.csv:1:1: error: h200_sweep_memory needs a column 'batch'"},
           {kHeader + "9b,2,1,512,sdpa,False,bf16,1,5,5\n", "t.csv:2:1: error: arch is none"},
           {kHeader + "7b,2.5,1,512,sdpa,False,bf16,1,5,5\n", "must be whole numbers"},
           {kHeader + "7b,2,1,512,sdpa,False,bf16,1,x,5\n", "after_forward must be a number"},
           {kHeader, "no row of this table can be compared"}}) {
    Diagnostics diagnostics;
    CHECK_FALSE(run(text, diagnostics));
    INFO(render(diagnostics));
    CHECK(render(diagnostics).find(message) != std::string::npos);
  }
}

}  // namespace
}  // namespace sim::study
