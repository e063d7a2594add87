#include "sim/study/validate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/scenario/scenario.h"
#include "sim/study/run.h"

namespace sim::study {

namespace {

void check_columns(const ValidationSet& set, const CsvTable& table, Diagnostics& diagnostics) {
  const auto require = [&](std::string_view column) {
    if (std::ranges::find(table.columns, column) != table.columns.end()) return;
    const std::string near = nearest(column, table.columns);
    diagnostics.error({table.file, 1, 1, 1},
                      fmt::format("{} needs a column '{}'", set.name, column),
                      near.empty() ? "" : fmt::format("the table has '{}'", near));
  };
  for (const std::string_view column : set.settings) require(column);
  for (const ValidatedColumn& figure : set.figures) require(figure.column);
}

// Null where the simulator refuses the scenario.
std::optional<Run> run_row(const RowScenario& row, Diagnostics& diagnostics) {
  const DataRoots roots = default_data_roots();
  auto scenario =
      read_scenario(std::make_shared<SourceFile>(SourceFile{"scenario of the row", row.scenario}),
                    roots, {}, diagnostics);
  auto model = read_model(
      "model of the row",
      std::make_shared<SourceFile>(SourceFile{"config.json of the row", row.config}), diagnostics);
  if (!scenario || !model) return std::nullopt;
  scenario->model = std::move(*model);
  return run(std::move(*scenario), {}, diagnostics);
}

std::string settings_of(const ValidationSet& set, const CsvRow& row) {
  std::vector<std::string> cells;
  for (const std::string_view column : set.settings) cells.push_back(printable(row.text(column)));
  return join(cells, " ");
}

std::string first_error(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity == Severity::error) return d.message;
  }
  return "the simulator refuses this row's scenario";
}

// What is wrong is said at the row; `skipped` is set where the set lets refused rows go.
std::optional<std::vector<ComparedFigure>> compare(const ValidationSet& set, const CsvRow& row,
                                                   const RowScenario& scenario,
                                                   std::optional<std::string>& skipped,
                                                   Diagnostics& diagnostics) {
  Diagnostics inner;
  const std::optional<Run> result = run_row(scenario, inner);
  if (!result && set.skips_refused) {
    skipped = first_error(inner);
    return std::nullopt;
  }
  if (!result) {
    Diagnostic& error = diagnostics.error(row.at(), "the simulator refuses this row's scenario");
    for (const Diagnostic& why : inner.all()) {
      if (why.severity == Severity::error) error.notes.push_back(why);
    }
    return std::nullopt;
  }
  std::vector<ComparedFigure> figures;
  const report::RankSummary& rank = result->report.ranks.front();
  for (const ValidatedColumn& column : set.figures) {
    if (column.may_be_empty && row.text(column.column).empty()) continue;
    std::optional<double> measured = row.number(column.column);
    if (!measured || *measured <= 0) {
      diagnostics.error(row.at(), fmt::format("{} must be a number above 0, not {}", column.column,
                                              in_quotes(row.text(column.column))));
      return std::nullopt;
    }
    if (column.before != nullptr) {
      *measured -= static_cast<double>(column.before(rank, row).count);
    }
    ComparedFigure figure{row.at().line,         std::string(column.column),
                          settings_of(set, row), *measured,
                          std::nullopt,          -1.0};
    if (const auto bytes = column.figure(rank)) {
      figure.simulated = static_cast<double>(bytes->count);
      figure.error = *figure.simulated / *measured - 1;
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

struct Errors {
  double mape = 0, max = 0, bias = 0;
};
Errors summarise(const std::vector<ComparedFigure>& figures, std::string_view column = {}) {
  Errors errors;
  double count = 0;
  for (const ComparedFigure& figure : figures) {
    if (!column.empty() && figure.column != column) continue;
    errors.mape += std::abs(figure.error);
    errors.bias += figure.error;
    errors.max = std::max(errors.max, std::abs(figure.error));
    ++count;
  }
  if (count > 0) errors.mape /= count, errors.bias /= count;
  return errors;
}

std::string percent(double fraction) { return fmt::format("{:.3f}%", fraction * 100); }
std::string signed_percent(double fraction) { return fmt::format("{:+.3f}%", fraction * 100); }
std::string bytes_text(double bytes) {
  return group_digits(static_cast<std::int64_t>(std::llround(bytes)));
}

}  // namespace

std::optional<Validation> validate(const ValidationSet& set, const CsvTable& table,
                                   Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.error_count();
  check_columns(set, table, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  Validation all;
  all.set = set.name;
  all.rows_in_table = static_cast<std::int64_t>(table.rows.size());
  for (const CsvTable::Row& cells : table.rows) {
    const CsvRow row(table, cells);
    const RowQuestion question = set.question(row);
    if (const auto* skipped = std::get_if<SkippedRow>(&question)) {
      ++all.rows_skipped[skipped->reason];
    } else if (const auto* bad = std::get_if<BadRow>(&question)) {
      diagnostics.error(row.at(), bad->message);
    } else {
      std::optional<std::string> refused;
      if (auto figures = compare(set, row, std::get<RowScenario>(question), refused, diagnostics)) {
        std::ranges::move(*figures, std::back_inserter(all.figures));
        ++all.rows;
      }
      if (refused) ++all.rows_skipped[*refused];
    }
  }
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  if (all.rows == 0) {
    diagnostics.error({table.file}, "no row of this table can be compared");
    return std::nullopt;
  }
  const Errors errors = summarise(all.figures);
  all.mape = errors.mape;
  all.max_error = errors.max;
  all.bias = errors.bias;
  return all;
}

std::string to_text(const Validation& validation, std::size_t worst) {
  std::string text = fmt::format("{}: {} of {} rows compared\n", validation.set, validation.rows,
                                 validation.rows_in_table);
  for (const auto& [reason, count] : validation.rows_skipped) {
    text += fmt::format("  skipped {}: {}\n", count, reason);
  }
  TextTable summary({"figure", "mean error", "largest", "bias"}, {false, true, true, true});
  std::vector<std::string> columns;
  for (const ComparedFigure& figure : validation.figures) {
    if (std::ranges::find(columns, figure.column) == columns.end()) {
      columns.push_back(figure.column);
    }
  }
  const auto add = [&](const std::string& name, const Errors& errors) {
    summary.add({name, percent(errors.mape), percent(errors.max), signed_percent(errors.bias)});
  };
  for (const std::string& column : columns) add(column, summarise(validation.figures, column));
  add("all", {validation.mape, validation.max_error, validation.bias});
  text += "\n" + summary.text();
  std::vector<ComparedFigure> sorted = validation.figures;
  std::ranges::stable_sort(sorted, [](const ComparedFigure& a, const ComparedFigure& b) {
    return std::abs(a.error) > std::abs(b.error);
  });
  if (sorted.size() > worst) sorted.resize(worst);
  TextTable table({"line", "row", "figure", "measured", "simulated", "error"},
                  {true, false, false, true, true, true});
  for (const ComparedFigure& figure : sorted) {
    table.add({fmt::to_string(figure.line), figure.row, figure.column, bytes_text(figure.measured),
               figure.simulated ? bytes_text(*figure.simulated) : "not reached",
               signed_percent(figure.error)});
  }
  return text + "\nfurthest off:\n" + table.text();
}

}  // namespace sim::study
