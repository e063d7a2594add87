// Collectives that not all members enter.
#include "tests/unit/engine/hand_program.h"

#include "tests/support/catch.h"

namespace sim::engine {
namespace {

TEST_CASE("a state dict that one rank asks for alone waits for ever") {
  HandProgram saves, others;
  saves.phase("save").in("model.embed_tokens");
  saves.call(saves.collective(CollectiveKind::all_gather, 500_MiB));
  saves.add(program::Copy{1, program::CopyDirection::device_to_host, true, false, {}});
  others.phase("save");
  program::Workload workload = hand_workload({saves.program, others.program}, 4, {0, 1, 1, 1});
  workload.watchdog = 1800_s;
  const Timeline t = simulate(workload, hand_machine(4));
  REQUIRE(std::holds_alternative<Hang>(t.verdict));
  const Hang& hang = std::get<Hang>(t.verdict);
  CHECK(hang.waiting == std::vector{RankId{0}});
  CHECK(hang.missing == std::vector{RankId{1}, RankId{2}, RankId{3}});
  CHECK(hang.collective == CollectiveKind::all_gather);
  CHECK(hang.phase == "save");
  CHECK(hang.scope == "model.embed_tokens");
  CHECK(hang.missing_is_doing == "finished its script");
  CHECK(hang.watchdog == 1800_s);
  CHECK(hang.message ==
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
        "OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800000 milliseconds before timing "
        "out.");
  CHECK(t.processes[0].signal == "SIGABRT");
  CHECK(t.processes[1].exit_code == 0);
}

TEST_CASE("ranks that wait in another collective are said to") {
  HandProgram first, second;
  first.call(first.collective(CollectiveKind::all_gather, 1_MiB, GroupId{0})).sync();
  second.call(second.collective(CollectiveKind::barrier, 0_MiB, GroupId{1})).sync();
  program::Workload workload = hand_workload({first.program, second.program}, 2, {0, 1});
  workload.groups.push_back({"other", {RankId{0}, RankId{1}}});
  const Timeline t = simulate(workload, hand_machine(2));
  REQUIRE(std::holds_alternative<Hang>(t.verdict));
  CHECK(std::get<Hang>(t.verdict).missing_is_doing == "waits in barrier of group other");
}

TEST_CASE("collectives that do not match hang and say why") {
  HandProgram first, second;
  first.call(first.collective(CollectiveKind::all_gather, 1_MiB));
  second.work(1_ms).call(second.collective(CollectiveKind::all_gather, 2_MiB));
  const Timeline t =
      simulate(hand_workload({first.program, second.program}, 2, {0, 1}), hand_machine(2));
  REQUIRE(std::holds_alternative<Hang>(t.verdict));
  const Hang& hang = std::get<Hang>(t.verdict);
  CHECK(hang.waiting == std::vector{RankId{0}});
  CHECK(hang.missing == std::vector{RankId{1}});
  CHECK(hang.missing_is_doing ==
        "is in all_gather of group world of 2.00 MiB instead, which does not match all_gather of "
        "1.00 MiB");
}

TEST_CASE("opposite orders on one stream are a deadlock") {
  const auto program_of = [](bool swapped) {
    HandProgram p;
    const auto a = p.collective(CollectiveKind::all_reduce, 1_MiB, GroupId{0});
    const auto b = p.collective(CollectiveKind::all_reduce, 2_MiB, GroupId{1});
    p.on(StreamRole::communication).call(swapped ? b : a).call(swapped ? a : b);
    return p.program;
  };
  program::Workload workload = hand_workload({program_of(false), program_of(true)}, 2, {0, 1});
  workload.groups.push_back({"other", {RankId{0}, RankId{1}}});
  const Timeline t = simulate(workload, hand_machine(2));
  REQUIRE(std::holds_alternative<Hang>(t.verdict));
  const Hang& hang = std::get<Hang>(t.verdict);
  CHECK(hang.waiting.size() == 1);
  CHECK(hang.missing.size() == 1);
  CHECK(hang.missing_is_doing == "waits in all_reduce of group other");
}

TEST_CASE("a rank outside the group waits for ever") {
  HandProgram p;
  p.call(p.collective(CollectiveKind::all_reduce, 1_MiB)).sync();
  program::Workload workload = hand_workload({p.program}, 2);
  workload.groups[GroupId{0}].ranks = {RankId{0}};
  const Timeline t = simulate(workload, hand_machine(2));
  REQUIRE(std::holds_alternative<Hang>(t.verdict));
  CHECK(std::get<Hang>(t.verdict).waiting == std::vector{RankId{1}});
}

TEST_CASE("the first failure in time ends the job") {
  HandProgram late, early;
  late.work(5_ms).alloc(late.tensor(2_GiB));
  early.work(1_ms).alloc(early.tensor(3_GiB));
  const Timeline t =
      simulate(hand_workload({late.program, early.program}, 2, {0, 1}), hand_machine(2));
  REQUIRE(std::holds_alternative<CudaOutOfMemory>(t.verdict));
  CHECK(std::get<CudaOutOfMemory>(t.verdict).rank == RankId{1});
  CHECK(std::get<CudaOutOfMemory>(t.verdict).message.find("GPU 1;") != std::string::npos);
}

}  // namespace
}  // namespace sim::engine
