// The parameters that an architecture registers against the counts that the models' publishers
// state (tests/data/models/parameter_counts.csv).
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/plan/architectures/architecture.h"
#include "sim/plan/plan.h"
#include "sim/scenario/config_reader.h"

#include "tests/support/catch.h"

namespace sim::plan {
namespace {

struct Row {
  std::string model;
  std::int64_t parameters = 0;
};

std::vector<Row> published() {
  std::ifstream file(SIM_SOURCE_DIR "/tests/data/models/parameter_counts.csv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#' || line.rfind("model,", 0) == 0) continue;
    std::istringstream fields(line);
    Row row;
    std::getline(fields, row.model, ',');
    fields >> row.parameters;
    rows.push_back(row);
  }
  return rows;
}

bool known(const std::string& architecture) {
  for (const Architecture* a : architecture_catalog().entries()) {
    if (a->name == architecture) return true;
  }
  return false;
}

std::int64_t count(const ModelSpec& model, const Architecture& architecture,
                   Diagnostics& diagnostics) {
  Implementations facts;
  facts.rotary_from_positions = true;
  facts.sequence = 8;
  GraphBuilder graph(facts, DType::bf16);
  ReadContext context{diagnostics};
  Var loss = architecture.build(model, std::nullopt, graph, context);
  if (!loss) return 0;
  return parameter_count(graph.finish(std::move(loss)));
}

TEST_CASE("every model of a known architecture has its published number of parameters") {
  const std::vector<Row> rows = published();
  REQUIRE(rows.size() == 74);
  for (const Row& row : rows) {
    Diagnostics diagnostics;
    const auto model = read_model({row.model, {}}, SIM_SOURCE_DIR "/models", diagnostics);
    REQUIRE(model);
    if (!known(model->architecture.name)) continue;
    INFO(row.model << ": " << model->architecture.name);
    const Architecture* architecture =
        architecture_catalog().find(model->architecture, diagnostics);
    const std::int64_t found = count(*model, *architecture, diagnostics);
    INFO(render(diagnostics));
    CHECK(found == row.parameters);
  }
}

}  // namespace
}  // namespace sim::plan
