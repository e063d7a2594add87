#include <memory>

#include "sim/scenario/config_node.h"
#include "sim/study/check.h"
#include "sim/study/tolerance.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

using namespace sim::literals;

constexpr double kGiB = 1 << 30;

ConfigNode parse(const std::string& text) {
  Diagnostics diagnostics;
  auto node =
      parse_config(std::make_shared<SourceFile>(SourceFile{"test.yaml", text}), diagnostics);
  INFO(render(diagnostics));
  REQUIRE(node);
  return *node;
}

std::optional<Band> band(const std::string& text, Quantity quantity = Quantity::bytes) {
  Diagnostics diagnostics;
  return read_band(parse("x: " + text).entries[0].value, quantity, "x", diagnostics);
}

std::vector<CheckLine> check(const std::string& expect, const report::Report& report,
                             std::size_t errors = 0) {
  std::vector<Expectation> expectations;
  const ConfigNode node = parse(expect);
  for (const ConfigNode::Entry& entry : node.entries) {
    expectations.push_back({entry.key, entry.value});
  }
  Diagnostics diagnostics;
  const auto lines = check_expectations(expectations, report, diagnostics);
  INFO(render(diagnostics));
  CHECK(diagnostics.error_count() == errors);
  return lines;
}

report::Report crashed_report() {
  report::Report report;
  report.verdict = Crashed{RankId{0},
                           "save.copy",
                           "base.model.layers.22.q_proj.weight",
                           "CUDA error: invalid argument",
                           1_GiB,
                           2_GiB,
                           3_MiB,
                           40_GiB,
                           {}};
  const auto warn = [&](const char* scope, Bytes tried, Bytes allocated) {
    report.warnings.push_back(
        {RankId{0}, "save", scope, "text", tried, allocated, 38_GiB, 58_MiB, 1});
  };
  warn("model.layers.22.q_proj.weight", 64_MiB, 38_GiB);
  warn("lm_head.weight", 500_MiB, Bytes{40300000000});
  report.caught_failures = {{}, "clone", "model.layers.22.q_proj.weight", "lm_head.weight", 2};
  report.idle_gpus = {{0, 3}, {0, 2}};
  report.processes = {{RankId{0}, 1, ""}, {RankId{3}, -9, "SIGKILL"}};
  report.hosts.push_back({HostId{0}, 64_GiB, 8_GiB, 1_GiB, {}, {}});
  report::PhaseSummary save;
  save.name = "save";
  save.peak_allocated = 20_GiB;
  report.ranks.push_back({{RankId{0}}, {save}, 40_GiB, {}});
  return report;
}

TEST_CASE("a bare figure has to agree in its printed digits", "[study]") {
  REQUIRE(band("37.52 GiB"));
  CHECK(contains(*band("37.52 GiB"), 37.5249 * kGiB));
  CHECK_FALSE(contains(*band("37.52 GiB"), 37.526 * kGiB));
  CHECK(contains(*band("500 B"), 500));
  CHECK_FALSE(contains(*band("500 B"), 501));
  CHECK(contains(*band("30 min", Quantity::duration), 1800));
  CHECK(contains(*band("22", Quantity::number), 22));
  CHECK_FALSE(contains(*band("22", Quantity::number), 22.4));
}

TEST_CASE("the other forms of a tolerance", "[study]") {
  CHECK(contains(*band("{value: 37.52 GiB, within: 0.15 GiB}"), 37.66 * kGiB));
  CHECK_FALSE(contains(*band("{value: 37.52 GiB, within: 0.15 GiB}"), 37.68 * kGiB));
  CHECK(contains(*band("{under: 64 MiB}"), 0));
  CHECK_FALSE(contains(*band("{over: 1 GiB}"), 5));
  CHECK(contains(*band("[31, 32]", Quantity::number), 32));
  CHECK_FALSE(band("37.52"));
  CHECK_FALSE(band("{value: 1 GiB, withn: 1 GiB}"));
  CHECK_FALSE(band("{within: 1 GiB}"));
  CHECK_FALSE(band("[1 GiB]"));
  CHECK_FALSE(band("x"));
}

TEST_CASE("what was expected and found stands in one line each", "[study]") {
  const auto lines = check(
      "{verdict: crashed, phase: save, scope: layers.22.q_proj.weight, message: invalid argument,"
      " tensor: lm_head.weight, tried: 500.00 MiB, allocated: {value: 37.52 GiB, within: 0.15 GiB},"
      " free: {under: 64 MiB}, first_failed_layer: [22, 23], warnings: 2, idle_gpus: [2, 3],"
      " exit_codes: {3: -9}, peak_allocated: {save: 20.00 GiB}, peak_host: 9 GiB}",
      crashed_report());
  CHECK(lines.size() == 14);
  for (const CheckLine& line : lines) {
    INFO(line.key << " found " << line.found);
    CHECK(line.pass);
  }
  CHECK(all_pass(lines));
}

TEST_CASE("a miss says by how much", "[study]") {
  const auto lines = check(
      "{allocated: {value: 37.00 GiB, within: 0.15 GiB}, free: {under: 8 MiB}}", crashed_report());
  REQUIRE(lines.size() == 2);
  CHECK_FALSE(all_pass(lines));
  CHECK(lines[0].deviation == "+545.07 MiB");
  CHECK(lines[1].deviation == "50.00 MiB too many");
  CHECK(to_text(lines).find("MISS") != std::string::npos);
}

TEST_CASE("several warnings may be expected, each with its figures", "[study]") {
  const auto lines = check(
      "{warnings: [{tensor: q_proj.weight, tried: 64.00 MiB, reserved: 38 GiB},"
      " {tensor: embed.weight, tried: 1 GiB}]}",
      crashed_report());
  REQUIRE(lines.size() == 5);
  CHECK(lines[1].pass);
  CHECK(lines[1].key == "warnings[0].tried");
  CHECK(lines[2].pass);
  CHECK_FALSE(lines[3].pass);
  CHECK(lines[4].found == "nothing");
}

TEST_CASE("a hang is checked by its ranks", "[study]") {
  report::Report report;
  Hang hang;
  hang.waiting = {RankId{1}, RankId{2}, RankId{3}};
  hang.missing = {RankId{0}};
  hang.watchdog = 1800_s;
  report.verdict = hang;
  const auto lines = check(
      "{verdict: hang, waiting_ranks: [1, 2, 3], missing_ranks: [0],"
      " collective: all_gather, watchdog: 30 min}",
      report);
  CHECK(all_pass(lines));
  CHECK(lines.back().found == lines.back().expected);
}

TEST_CASE("unknown keys and unreadable values are errors", "[study]") {
  check("{verdct: fits}", crashed_report(), 1);
  check("{tried: many}", crashed_report(), 1);
  check("{verdict: [a]}", crashed_report(), 1);
  check("{verdict: crash}", crashed_report(), 1);
  check("{phase: sav}", crashed_report(), 1);
  check("{idle_gpus: 3}", crashed_report(), 1);
  check("{exit_codes: 3}", crashed_report(), 1);
  check("{warnings: [{tried: 1 GiB}]}", crashed_report(), 1);
}

}  // namespace
}  // namespace sim::study
