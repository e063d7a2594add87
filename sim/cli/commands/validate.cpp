// rehearse validate SET TABLE.csv [--json]: measured tables against the simulator.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/cli/command.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/study/validate.h"

namespace sim::cli {
namespace {

struct Options {
  std::string set, table, output;
  bool json = false;
};

std::string as_json(const study::Validation& validation) {
  nlohmann::ordered_json json;
  json["set"] = validation.set;
  json["rows"] = validation.rows;
  json["rows_in_table"] = validation.rows_in_table;
  json["rows_skipped"] = nlohmann::ordered_json::object();
  for (const auto& [reason, count] : validation.rows_skipped) json["rows_skipped"][reason] = count;
  json["mape"] = validation.mape;
  json["max_error"] = validation.max_error;
  json["bias"] = validation.bias;
  json["figures"] = nlohmann::ordered_json::array();
  for (const study::ComparedFigure& figure : validation.figures) {
    nlohmann::ordered_json entry{{"line", figure.line},     {"row", figure.row},
                                 {"column", figure.column}, {"measured", figure.measured},
                                 {"simulated", nullptr},    {"error", figure.error}};
    if (figure.simulated) entry["simulated"] = *figure.simulated;
    json["figures"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<study::Validation> compare(const study::ValidationSet& set,
                                         const study::CsvTable& table, Diagnostics& diagnostics) {
  const Progress progress("comparing");
  return study::validate(set, table, diagnostics);
}

int validate(const Options& options) {
  Diagnostics diagnostics;
  const study::ValidationSet* set =
      study::validation_catalog().find({options.set, {}}, diagnostics);
  const auto table = study::read_csv_table(options.table, diagnostics);
  may_write(options.output, {options.table}, diagnostics);
  if (!set || !table || diagnostics.has_errors()) return refuse(diagnostics);
  const auto result = compare(*set, *table, diagnostics);
  if (!result) return refuse(diagnostics);
  write_result(options.json ? as_json(*result) : study::to_text(*result), options.output);
  return 0;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("set", options->set, "what the table holds: rehearse list validation-sets")
      ->required();
  app.add_option("table", options->table, "measurements (CSV)")->required();
  app.add_flag("--json", options->json, "one JSON object");
  app.add_option("-o,--output", options->output, "write the result to FILE")->type_name("FILE");
  return [options] { return validate(*options); };
}

}  // namespace

const Command kValidate{"validate", "compare a table of measurements with the simulator",
                        "0 the comparison is printed", add};

}  // namespace sim::cli
