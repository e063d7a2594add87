#include "sim/study/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.h"

namespace sim::study {

namespace {

struct Cells {
  std::vector<std::string> cells;
  bool open_quote = false;
};

Cells split(std::string_view line) {
  Cells result;
  std::string cell;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (result.open_quote && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cell += line[++i];
    } else if (c == '"') {
      result.open_quote = !result.open_quote;
    } else if (c == ',' && !result.open_quote) {
      result.cells.push_back(std::exchange(cell, {}));
    } else {
      cell += c;
    }
  }
  result.cells.push_back(std::move(cell));
  return result;
}

std::string_view without_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

void read_line(std::string_view line, int number, CsvTable& table, Diagnostics& diagnostics) {
  const Span at{table.file, number, 1, 1};
  Cells read = split(line);
  if (read.open_quote) {
    diagnostics.error(at, "this row leaves a quote open");
    return;
  }
  if (!table.columns.empty()) {
    if (read.cells.size() > table.columns.size()) {
      diagnostics.error(at, fmt::format("this row has {} cells under {} columns", read.cells.size(),
                                        table.columns.size()));
    }
    table.rows.push_back({number, std::move(read.cells)});
    return;
  }
  table.columns = std::move(read.cells);
  std::vector<std::string> sorted = table.columns;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    diagnostics.error(at, fmt::format("there are two columns {}", in_quotes(*twice)));
  }
}

}  // namespace

std::optional<CsvTable> read_csv_table(std::shared_ptr<const SourceFile> file,
                                       Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.error_count();
  CsvTable table;
  table.file = std::move(file);
  std::string_view rest = table.file->text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = without_return(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty()) read_line(line, number, table, diagnostics);
  }
  if (table.columns.empty()) {
    diagnostics.error({table.file}, "the file is empty",
                      "a first line with the names of the columns is expected");
  }
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return table;
}

std::optional<CsvTable> read_csv_table(const std::string& path, Diagnostics& diagnostics) {
  std::shared_ptr<const SourceFile> file = read_source_file(path, {}, diagnostics);
  return file ? read_csv_table(std::move(file), diagnostics) : std::nullopt;
}

std::string_view CsvRow::text(std::string_view column) const {
  const auto found = std::ranges::find(table_.columns, column);
  const auto index = static_cast<std::size_t>(found - table_.columns.begin());
  return index < row_.cells.size() ? std::string_view(row_.cells[index]) : std::string_view();
}

std::optional<double> CsvRow::number(std::string_view column) const {
  const std::string_view cell = text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  const bool whole = error == std::errc{} && end == cell.data() + cell.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace sim::study
