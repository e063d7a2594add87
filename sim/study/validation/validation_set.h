// A validation set: how the rows of one kind of measured table become scenarios, and which figure
// of the report each measured column is to be compared with. One file per set; catalog.cpp lists
// them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "sim/base/catalog.h"
#include "sim/report/report.h"
#include "sim/study/csv_table.h"

namespace sim::study {

// A row that cannot be compared, and why: "the run itself ran out of memory".
struct SkippedRow {
  std::string reason;
};
// A cell that this set does not know: the table is of another form.
struct BadRow {
  std::string message;
};
// The run that a row measured. The scenario names any model; `config` (a config.json) takes its
// place.
struct RowScenario {
  std::string scenario, config;
};
using RowQuestion = std::variant<RowScenario, SkippedRow, BadRow>;

// Empty where the run did not get so far.
using FigureOf = std::optional<Bytes> (*)(const report::RankSummary& rank);

// Memory of the measured process that earlier rows left behind, or that the run found made: taken
// off what was measured.
using FoundBefore = Bytes (*)(const report::RankSummary& rank, const CsvRow& row);

struct ValidatedColumn {
  std::string_view column;
  FigureOf figure;
  FoundBefore before = nullptr;
  bool may_be_empty = false;  // the measured run has no such phase
};

struct ValidationSet {
  std::string_view name;
  std::string_view description;
  std::span<const std::string_view> settings;  // columns that question() reads
  std::span<const ValidatedColumn> figures;
  RowQuestion (*question)(const CsvRow& row);
  bool skips_refused = false;  // a row that the simulator refuses is skipped for that reason
};

// Each set defines itself in <name>.cpp.
extern const ValidationSet kH200SweepMemory, kH200Sharding;
const Catalog<ValidationSet>& validation_catalog();

// The phase of that name; null where the rank never came there.
const report::PhaseSummary* find_phase(const report::RankSummary& rank, std::string_view name);

}  // namespace sim::study
