// A table of measurements: comma-separated values under one line of column names. Cells may be
// quoted ("a, b" and "" for a quote); a row may be shorter than the header.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"

namespace sim::study {

struct CsvTable {
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };
  std::shared_ptr<const SourceFile> file;
  std::vector<std::string> columns;
  std::vector<Row> rows;  // blank lines are none
};

// Empty, and errors filed, where the file cannot be read, has no header or two columns of one name,
// leaves a quote open, or has a row longer than the header.
std::optional<CsvTable> read_csv_table(const std::string& path, Diagnostics& diagnostics);
std::optional<CsvTable> read_csv_table(std::shared_ptr<const SourceFile> file,
                                       Diagnostics& diagnostics);

// One row by column names.
class CsvRow {
 public:
  CsvRow(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {}
  Span at() const { return {table_.file, row_.line, 1, 1}; }
  // Empty where the row ends before that column, or there is none of that name.
  std::string_view text(std::string_view column) const;
  std::optional<double> number(std::string_view column) const;

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
};

}  // namespace sim::study
