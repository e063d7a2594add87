// Loops, and the iterations that are skipped.
#include "tests/unit/engine/hand_program.h"

#include "tests/support/catch.h"

namespace sim::engine {
namespace {

// A step in the large: forward, backward, a collective, a wait at its end.
HandProgram training(std::uint32_t steps, std::uint32_t micro_batches) {
  HandProgram p;
  const auto k = p.kernel(10_MiB);
  const auto gather = p.collective(CollectiveKind::all_gather, 8_MiB);
  const auto weights = p.tensor(100_MiB, MemoryClass::parameters);
  const auto activation = p.tensor(30_MiB, MemoryClass::activations);
  const auto flat = p.tensor(50_MiB);
  p.phase("load").alloc(weights).phase("step");
  const std::uint32_t body = 8;
  p.add(program::Loop{body + 2, steps}).add(program::Loop{body, micro_batches});
  p.on(StreamRole::unshard).alloc(flat).call(gather);
  p.on(StreamRole::compute).alloc(activation).launch(k);
  p.add(program::RecordStream{flat, StreamRole::compute}).free(flat).free(activation);
  p.work(20_us);
  p.sync();
  p.work(1_ms);
  return p;
}

TEST_CASE("a loop runs as often as it says") {
  HandProgram p;
  const auto k = p.kernel(1_MiB);
  p.add(program::Loop{3, 5}).launch(k).add(program::Loop{1, 4}).launch(k);
  p.add(program::Loop{1, 0}).launch(k).launch(k);
  CHECK(run_one(p).ranks[0].launches == 5 * (1 + 4) + 1);
}

TEST_CASE("a loop longer than the rest of the program ends with it") {
  HandProgram p;
  p.add(program::Loop{100, 3}).launch(p.kernel(1_MiB));
  CHECK(run_one(p).ranks[0].launches == 3);
}

TEST_CASE("skipped iterations give what the whole loop gives") {
  for (const std::uint32_t micro_batches : {1u, 3u, 40u}) {
    const HandProgram p = training(50, micro_batches);
    const program::Workload workload = hand_workload({p.program}, 8);
    // Recording keeps every iteration.
    const Timeline all = simulate(workload, hand_machine(8), {.record_slices = true});
    const Timeline skipped = simulate(workload, hand_machine(8));
    const RankRecord& a = all.ranks[0];
    const RankRecord& b = skipped.ranks[0];
    CHECK(a.finished == b.finished);
    CHECK(a.launches == b.launches);
    REQUIRE(a.phases.size() == b.phases.size());
    for (std::size_t i = 0; i < a.phases.size(); ++i) {
      CHECK(a.phases[i].begin == b.phases[i].begin);
      CHECK(a.phases[i].end == b.phases[i].end);
      CHECK(a.phases[i].peak_allocated == b.phases[i].peak_allocated);
      CHECK(a.phases[i].peak_reserved == b.phases[i].peak_reserved);
    }
    CHECK(a.launches == 50 * micro_batches * 2);
  }
}

TEST_CASE("a long loop takes no longer than a short one") {
  const HandProgram p = training(1'000'000, 4);
  const Timeline t = simulate(hand_workload({p.program}, 8), hand_machine(8));
  CHECK(t.ranks[0].launches == 8'000'000);
  CHECK(std::holds_alternative<Fits>(t.verdict));
}

TEST_CASE("a loop that leaks runs until it fails") {
  HandProgram p;
  for (int i = 0; i < 3; ++i) p.tensor(1_MiB);
  program::TensorInfo leak;
  leak.bytes = 1_MiB;
  const auto keep = p.kernel(1_MiB);
  p.add(program::Loop{2, 100}).launch(keep).add(program::HostAlloc{p.buffer(1_MiB)});
  // The same buffer again frees the one before: nothing grows.
  CHECK(std::holds_alternative<Fits>(run_one(p).verdict));
}

}  // namespace
}  // namespace sim::engine
