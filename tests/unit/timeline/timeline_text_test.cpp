#include "sim/timeline/timeline_text.h"
#include "tests/support/catch.h"

namespace sim {
namespace {

TEST_CASE("a timeline prints what is there and nothing else") {
  Timeline t;
  t.scopes.push_back("model.layers.0");
  t.labels = {"fill"};
  RankRecord rank;
  rank.ranks = {RankId{0}, RankId{1}, RankId{2}, RankId{5}};
  rank.ops_done = 12;
  rank.launches = 3;
  rank.finished = Instant{Duration{700}};
  PhaseRecord phase;
  phase.name = "load";
  phase.end = Instant{Duration{700}};
  phase.peak_allocated = 1_MiB;
  phase.peak_by_class[0] = 1_MiB;
  rank.phases = {phase};
  t.ranks = {rank};
  t.processes = {{RankId{0}, 0, ""}, {RankId{1}, -15, "SIGTERM"}};
  t.hosts = {{HostId{0}, 1_GiB, 5_B, {}, {}, {{"load", 5_B, {}, {}, 3_B}}}};
  t.slices = {{RankId{0}, StreamRole::unshard, false, SliceKind::kernel, Instant{Duration{1}},
               Instant{Duration{9}}, ScopeId{0}, 0}};
  t.memory = {{RankId{0}, Instant{Duration{4}}, 2, 1_MiB, 2_MiB, 3_MiB}};
  CHECK(to_text(t) ==
        "verdict fits\n"
        "process 0 exit 0\n"
        "process 1 exit -15 signal SIGTERM\n"
        "ranks 0-2,5 program 0 ops 12 launches 3 finished 700\n"
        "  phase load 0..700 allocated 1048576/0 parameters 1048576\n"
        "host 0 capacity 1073741824 anonymous 5\n"
        "  phase load anonymous 5 begin_anonymous 3\n"
        "kernel 0 unshard 1..9 is fill of model.layers.0\n"
        "memory 0 op 2 at 4 allocated 1048576 reserved 2097152 device_used 3145728\n");
}

TEST_CASE("every verdict prints its message line by line") {
  Timeline t;
  t.verdict = CudaOutOfMemory{RankId{2}, "save", "w", "CUDA\nout", "clone", 1_B,
                              2_B,       3_B,    4_B, 5_B,         6_B,     {}};
  CHECK(to_text(t) ==
        "verdict cuda_out_of_memory rank 2 phase save scope w tensor clone requested 1 tried 2 "
        "allocated 3 reserved 4 free 5 total 6\n  | CUDA\n  | out\n");
  t.verdict = HostOutOfMemory{HostId{1}, RankId{9}, "load", "", "killed", 1_B, 2_B, 3_B, {}};
  CHECK(to_text(t) ==
        "verdict host_out_of_memory host 1 rank 9 phase load requested 1 capacity 2 used 3\n"
        "  | killed\n");
  t.verdict = Hang{{RankId{0}}, {RankId{1}}, CollectiveKind::barrier, "save", "", "late", "sleeps",
                   1_ns,        {}};
  CHECK(to_text(t) ==
        "verdict hang waiting 0 missing 1 collective barrier phase save watchdog 1000\n"
        "  | late\n  | missing: sleeps\n");
  t.verdict = Crashed{RankId{0}, "save", "w", "invalid", 1_B, 2_B, 3_B, 4_B, {}};
  CHECK(to_text(t) ==
        "verdict crashed rank 0 phase save scope w allocated 1 reserved 2 free 3 total 4\n"
        "  | invalid\n");
}

}  // namespace
}  // namespace sim
