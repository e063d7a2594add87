#include <array>

#include "sim/report/ledger.h"
#include "sim/report/report.h"
#include "sim/report/verdict_text.h"
#include "tests/support/catch.h"
#include "tests/unit/report/samples.h"

namespace sim::report {
namespace {

using namespace sim::literals;

const PhaseSummary* find(const Report& report, const std::string& name) {
  for (const PhaseSummary& phase : report.ranks.front().phases) {
    if (phase.name == name) return &phase;
  }
  return nullptr;
}

Bytes sum(const Ledger& ledger) {
  Bytes total = ledger.rounding;
  for (const LedgerLine& line : ledger.lines) total += line.bytes;
  return total;
}

TEST_CASE("intervals of one phase name become one summary", "[report]") {
  const Report report = samples::fits().report();
  const PhaseSummary* step = find(report, "step");
  REQUIRE(step != nullptr);
  CHECK(step->begin == Instant{3_s});
  CHECK(step->end == Instant{6_s});
  CHECK(step->peak_allocated == 3_GiB + 1024_B);
  CHECK(step->end_allocated == 3_GiB + 512_B);
  CHECK(report.ranks.front().phases.size() == 3);
}

TEST_CASE("a sub-phase also counts for its phase, but step0 is no phase", "[report]") {
  samples::Sample s = samples::fits();
  s.timeline.ranks.front().phases = {samples::phase("step0.forward", 0_s, 1_s, 1_GiB, 0),
                                     samples::phase("step.7", 0_s, 1_s, 9_GiB, 0),
                                     samples::phase("step.forward", 1_s, 3_s, 2_GiB, 0),
                                     samples::phase("step.backward", 3_s, 6_s, 3_GiB, 0)};
  const Report report = s.report();
  CHECK(find(report, "step0") == nullptr);
  REQUIRE(find(report, "step") != nullptr);
  CHECK(find(report, "step")->peak_allocated == 3_GiB);
  REQUIRE(report.step);
  CHECK(report.step->time == 5_s);
  CHECK(report.step->forward == 2_s);
  CHECK(report.step->backward == 3_s);
  CHECK_FALSE(report.step->optimizer);
}

TEST_CASE("the step's rates follow from its time", "[report]") {
  const Report report = samples::fits().report();
  REQUIRE(report.step);
  CHECK(report.step->time == 3_s);
  CHECK(report.step->tokens_per_second == Approx(4096.0 / 3));
  CHECK(report.step->model_tflops_per_gpu == Approx(4.0 / 3 / 4));
  REQUIRE(report.step->mfu);
  CHECK(*report.step->mfu == Approx(4.0 / 3 / 4 / 100));
}

TEST_CASE("a step that the failure cut short is not summarised", "[report]") {
  samples::Sample s = samples::out_of_gpu_memory();
  s.timeline.ranks.front().phases.push_back(samples::phase("step", 3_s, 4_s, 4_GiB, 6));
  std::get<CudaOutOfMemory>(s.timeline.verdict).phase = "step";
  CHECK_FALSE(s.report().step);
}

TEST_CASE("time in which only communication runs is exposed", "[report]") {
  samples::Sample s = samples::fits();
  const auto slice = [&](SliceKind kind, Duration begin, Duration end) {
    Slice one;
    one.rank = RankId{0};
    one.kind = kind;
    one.begin = Instant{begin};
    one.end = Instant{end};
    s.timeline.slices.push_back(one);
  };
  slice(SliceKind::collective, 1_s, 4_s);  // the first two seconds lie before the step
  slice(SliceKind::kernel, 3500_ms, 4500_ms);
  slice(SliceKind::collective, 4_s, 5_s);
  const Report report = s.report();
  REQUIRE(report.step);
  CHECK(report.step->exposed_communication == 1_s);
}

TEST_CASE("ranks take the visible cards in order, the others of them are idle", "[report]") {
  const Report report = samples::fits().report();
  REQUIRE(report.placement.size() == 4);
  const std::array<std::uint32_t, 4> used = {7, 6, 5, 4};
  for (std::size_t r = 0; r < 4; ++r) CHECK(report.placement[r].physical_gpu == used[r]);
  REQUIRE(report.idle_gpus.size() == 2);
  CHECK(report.idle_gpus[0].physical_gpu == 3);
  CHECK(report.idle_gpus[1].physical_gpu == 2);
}

TEST_CASE("without a visible list all cards of each node are the job's", "[report]") {
  const Report report = samples::out_of_gpu_memory().report();
  CHECK(report.placement[3].host == 1);
  CHECK(report.placement[3].local_rank == 1);
  CHECK(report.idle_gpus.size() == 12);
}

TEST_CASE("the ledger of a job that fits stands at its highest peak", "[report]") {
  const Report report = samples::fits().report();
  REQUIRE(report.ledger);
  const Ledger& ledger = *report.ledger;
  CHECK(ledger.phase == "step");
  CHECK(ledger.allocated == 3_GiB + 1024_B);
  REQUIRE(ledger.lines.size() == 2);
  CHECK(ledger.lines[0].owner == "model.embed_tokens");
  CHECK(ledger.lines[0].bytes == 3_GiB);
  CHECK(ledger.lines[1].owner == "model.layers.*.mlp");
  CHECK(ledger.lines[1].what == "saved by silu");
  CHECK(ledger.lines[1].tensors == 2);
  CHECK(ledger.lines[1].bytes == 400_B);
  CHECK(ledger.rounding == 624_B);
  CHECK(sum(ledger) == ledger.allocated);
}

TEST_CASE("a later pass of a loop finds what the first one left", "[report]") {
  program::Program p;
  program::TensorInfo info;
  info.bytes = 4_KiB;
  const program::TensorId input = p.tensors.push_back(info), gradient = p.tensors.push_back(info);
  for (const program::Body& body :
       {program::Body{program::Loop{3, 5}}, program::Body{program::Alloc{input}},
        program::Body{program::Alloc{gradient}}, program::Body{program::Free{input}}}) {
    p.ops.push_back({body, {}, StreamRole::compute});
  }
  CHECK(alive_before(p, 2, {}, 4_KiB).front().tensors == 1);
  CHECK(alive_before(p, 2, {}, 8_KiB).front().tensors == 2);
}

TEST_CASE("the ledger of a failure stands just before it", "[report]") {
  for (const samples::Sample& s : {samples::out_of_gpu_memory(), samples::crashed()}) {
    const Report report = s.report();
    REQUIRE(report.ledger);
    CHECK(report.ledger->allocated == 4_GiB);
    CHECK(report.ledger->lines.size() == 2);
    CHECK(report.ledger->lines[1].what == "state-dict clone");
    CHECK(report.ledger->lines[1].tensors == 1);
    CHECK(sum(*report.ledger) == report.ledger->allocated);
    CHECK(report.ledger->rounding == 0_B);
  }
}

TEST_CASE("caught failures are named from the tensors that were never allocated", "[report]") {
  const Report report = samples::crashed().report();
  REQUIRE(report.caught_failures);
  CHECK(report.caught_failures->what == "state-dict clone");
  CHECK(report.caught_failures->first_scope == "model.layers.1.self_attn.q_proj.weight");
  CHECK(report.caught_failures->count == 1);
  CHECK(report.caught_failures->ranks.size() == 4);
}

TEST_CASE("warnings of several rank classes stand in time order", "[report]") {
  samples::Sample sample = samples::crashed();
  RankRecord& first = sample.timeline.ranks.front();
  first.warnings.push_back(first.warnings.front());
  RankRecord second = first;
  second.ranks = {RankId{2}};
  for (WarningRecord& warning : second.warnings) warning.rank = RankId{2};
  second.warnings.front().phase = "load";
  sample.timeline.ranks.push_back(second);
  std::vector<std::uint32_t> ranks;
  for (const WarningRecord& warning : sample.report().warnings) ranks.push_back(warning.rank.value);
  CHECK(ranks == std::vector<std::uint32_t>{2, 0, 2, 0});
}

TEST_CASE("what a host held before the request that was too much", "[report]") {
  HostOutOfMemory oom;
  oom.capacity = 80_GiB;
  oom.requested = 1_GiB;
  oom.used = 80_GiB + 512_MiB;
  CHECK(held_before(oom) == 79_GiB + 512_MiB);
  oom.used = 79_GiB;
  CHECK(held_before(oom) == 79_GiB);
}

TEST_CASE("the host's ledger adds up its processes", "[report]") {
  const Report report = samples::out_of_host_memory().report();
  REQUIRE(report.host_ledger);
  REQUIRE(report.host_ledger->lines.size() == 1);
  CHECK(report.host_ledger->lines[0].what == "weights in fp32");
  CHECK(report.host_ledger->lines[0].bytes == 60_GiB);
  CHECK(report.host_ledger->lines[0].processes == 4);
}

TEST_CASE("owners fold layer numbers", "[report]") {
  CHECK(owner_of("model.layers.22.self_attn.q_proj.weight") == "model.layers.*.self_attn");
  CHECK(owner_of("base.model.layers.3.mlp.experts.7.w1.weight") ==
        "base.model.layers.*.mlp.experts.*.w1");
  CHECK(owner_of("lm_head.weight") == "lm_head");
  CHECK(owner_of("model.norm") == "model.norm");
  CHECK(owner_of("") == "(root)");
}

TEST_CASE("rank lists and layer numbers", "[report]") {
  CHECK(ranges(std::vector<std::uint32_t>{0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8");
  CHECK(ranges(std::vector<std::uint32_t>{}) == "");
  CHECK(layer_of("model.layers.22.mlp") == 22);
  CHECK(layer_of("lm_head.weight") == -1);
  CHECK(is_in("save.clone", "save"));
  CHECK_FALSE(is_in("step0.forward", "step"));
}

}  // namespace
}  // namespace sim::report
