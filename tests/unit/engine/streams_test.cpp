// Streams, events and what the host waits for, timed by hand.
#include "tests/unit/engine/hand_program.h"

#include "tests/support/catch.h"

namespace sim::engine {
namespace {

using Kernels = std::vector<Slice>;

Kernels slices_of(const Timeline& timeline, SliceKind kind, bool on_host = false) {
  Kernels found;
  for (const Slice& slice : timeline.slices) {
    if (slice.kind == kind && slice.on_host == on_host) found.push_back(slice);
  }
  return found;
}

const SimulateOptions kSlices{.record_slices = true};

TEST_CASE("the host runs ahead of a busy stream and waits where it must") {
  const Machine machine = hand_machine(1);
  const Duration launch = machine.timer->launch_cost();
  HandProgram p;
  const auto k = p.kernel(100_MiB);
  p.launch(k).launch(k).work(1_us).sync().work(5_us);
  const Duration busy = machine.timer->time(p.program.kernels[k]).duration;
  REQUIRE(busy > launch * 4);

  const Timeline t = run_one(p, 1_GiB, kSlices);
  const Kernels kernels = slices_of(t, SliceKind::kernel);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].begin == Instant{launch});
  CHECK(kernels[1].begin == kernels[0].end);
  CHECK(kernels[1].end == Instant{launch + busy * 2});
  CHECK(t.ranks[0].finished == Instant{launch + busy * 2 + 5_us});
  CHECK(t.ranks[0].launches == 2);
}

TEST_CASE("an idle stream starts a kernel when the host issues it") {
  const Machine machine = hand_machine(1);
  HandProgram p;
  p.work(1_ms).launch(p.kernel(1_KiB));
  const Timeline t = run_one(p, 1_GiB, kSlices);
  CHECK(slices_of(t, SliceKind::kernel)[0].begin == Instant{1_ms + machine.timer->launch_cost()});
}

TEST_CASE("streams overlap but for events") {
  HandProgram p;
  const auto k = p.kernel(100_MiB);
  const auto e = p.event();
  p.launch(k).add(program::RecordEvent{e}).launch(k);
  p.on(StreamRole::communication).launch(k);
  p.add(program::WaitEvent{e}).launch(k);
  const Timeline t = run_one(p, 1_GiB, kSlices);
  const Kernels kernels = slices_of(t, SliceKind::kernel);
  REQUIRE(kernels.size() == 4);
  CHECK(kernels[2].begin < kernels[0].end);   // another stream
  CHECK(kernels[3].begin == kernels[2].end);  // the event passed long before
  CHECK(kernels[3].begin > kernels[0].end);
}

TEST_CASE("a stream waits for the event's moment, not for what follows it") {
  HandProgram p;
  const auto big = p.kernel(500_MiB);
  const auto small = p.kernel(1_MiB);
  const auto e = p.event();
  p.launch(big).add(program::RecordEvent{e}).launch(big);
  p.on(StreamRole::unshard).add(program::WaitEvent{e}).launch(small);
  const Timeline t = run_one(p, 1_GiB, kSlices);
  const Kernels kernels = slices_of(t, SliceKind::kernel);
  CHECK(kernels[2].begin == kernels[0].end);
}

TEST_CASE("an event that was never recorded holds nobody") {
  HandProgram p;
  const auto e = p.event();
  p.add(program::WaitEvent{e}).add(program::Synchronize{e});
  CHECK(run_one(p).ranks[0].finished == Instant{});
}

TEST_CASE("a blocking copy holds the host; pageable memory always does") {
  const auto finished = [](bool blocking, bool pinned) {
    HandProgram p;
    p.add(program::Copy{1 << 16, program::CopyDirection::device_to_host, blocking, pinned, {}});
    p.work(1_ns);
    const Timeline t = run_one(p, 1_GiB, kSlices);
    const auto host = slices_of(t, SliceKind::host_work, true);
    return host[0].begin >= slices_of(t, SliceKind::copy)[0].end;
  };
  CHECK(finished(true, true));
  CHECK_FALSE(finished(false, true));
  CHECK(finished(false, false));
}

TEST_CASE("a collective begins when the last member comes and ends for all at once") {
  HandProgram early, late;
  const auto k = early.kernel(100_MiB);
  early.call(early.collective(CollectiveKind::all_gather, 64_MiB)).launch(k);
  late.work(3_ms)
      .call(late.collective(CollectiveKind::all_gather, 64_MiB))
      .launch(late.kernel(100_MiB));
  const Machine machine = hand_machine(2);
  const Timeline t =
      simulate(hand_workload({early.program, late.program}, 2, {0, 1}), machine, kSlices);
  const Kernels calls = slices_of(t, SliceKind::collective);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].begin == Instant{3_ms + machine.timer->launch_cost()});
  CHECK(calls[0].begin == calls[1].begin);
  CHECK(calls[0].end == calls[1].end);
  // The early rank's kernel was issued long before it could be timed.
  for (const Slice& kernel : slices_of(t, SliceKind::kernel)) {
    CHECK(kernel.begin == calls[0].end);
  }
  CHECK(std::holds_alternative<Fits>(t.verdict));
  CHECK(slices_of(t, SliceKind::wait).size() == 1);
}

TEST_CASE("the host of an early member waits for the late one only where it synchronizes") {
  HandProgram early, late;
  const auto e = early.event();
  early.on(StreamRole::communication).call(early.collective(CollectiveKind::all_reduce, 1_MiB));
  early.add(program::RecordEvent{e}).work(1_us).add(program::Synchronize{e}).work(1_us);
  late.on(StreamRole::communication)
      .work(2_ms)
      .call(late.collective(CollectiveKind::all_reduce, 1_MiB));
  const Timeline t =
      simulate(hand_workload({early.program, late.program}, 2, {0, 1}), hand_machine(2), kSlices);
  const auto host = slices_of(t, SliceKind::host_work, true);
  const Kernels calls = slices_of(t, SliceKind::collective);
  REQUIRE(host.size() == 3);
  CHECK(host[0].end < Instant{1_ms});
  CHECK(t.ranks[0].finished == calls[0].end + 1_us);
}

TEST_CASE("members may issue collectives of two groups in different orders on two streams") {
  // Neither host waits, so this is no deadlock: the work of both streams goes on.
  const auto program_of = [](bool swapped) {
    HandProgram p;
    const auto a = p.collective(CollectiveKind::all_reduce, 1_MiB, GroupId{0});
    const auto b = p.collective(CollectiveKind::all_reduce, 2_MiB, GroupId{1});
    p.on(swapped ? StreamRole::unshard : StreamRole::communication).call(swapped ? b : a);
    p.on(swapped ? StreamRole::communication : StreamRole::unshard).call(swapped ? a : b);
    p.sync();
    return p.program;
  };
  program::Workload workload = hand_workload({program_of(false), program_of(true)}, 2, {0, 1});
  workload.groups.push_back({"other", {RankId{0}, RankId{1}}});
  CHECK(std::holds_alternative<Fits>(simulate(workload, hand_machine(2)).verdict));
}

}  // namespace
}  // namespace sim::engine
