// A table of measurements against the simulator: each row's run is simulated, each figure compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/study/csv_table.h"
#include "sim/study/validation/validation_set.h"

namespace sim::study {

// error = simulated / measured - 1; a run that did not get as far as the measured one is off by 1.
struct ComparedFigure {
  int line = 0;        // of the table
  std::string column;  // "after_forward"
  std::string row;     // its settings: "7b 4 1 2048 sdpa False bf16"
  double measured = 0;
  std::optional<double> simulated;
  double error = 0;
};

struct Validation {
  std::string set;
  std::int64_t rows_in_table = 0, rows = 0;          // rows: those compared
  std::map<std::string, std::int64_t> rows_skipped;  // by reason
  std::vector<ComparedFigure> figures;               // by row, then by column
  double mape = 0, max_error = 0, bias = 0;          // fractions; bias is the mean signed error
};

// Empty, and errors filed at their rows, where the table is not of the set's form or no row of it
// can be compared.
std::optional<Validation> validate(const ValidationSet& set, const CsvTable& table,
                                   Diagnostics& diagnostics);

// Rows used and skipped, errors in all and by column, and the `worst` figures furthest off.
std::string to_text(const Validation& validation, std::size_t worst = 10);

}  // namespace sim::study
