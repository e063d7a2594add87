// Device and host memory of running ranks.
#include "tests/unit/engine/hand_program.h"

#include "tests/support/catch.h"

namespace sim::engine {
namespace {

TEST_CASE("phases keep their own peaks, ends and classes") {
  HandProgram p;
  p.phase("load");
  const auto w = p.tensor(100_MiB, MemoryClass::parameters);
  const auto x = p.tensor(40_MiB, MemoryClass::activations);
  const auto y = p.tensor(20_MiB, MemoryClass::temporaries);
  p.alloc(w).phase("step").alloc(x).free(x).alloc(y).work(1_ms);
  const Timeline t = run_one(p);
  const auto& phases = t.ranks[0].phases;
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].name == "load");
  CHECK(phases[0].peak_allocated == 100_MiB);
  CHECK(phases[0].end_allocated == 100_MiB);
  CHECK(phases[1].peak_allocated == 140_MiB);
  CHECK(phases[1].peak_op == 3);
  CHECK(phases[1].end_allocated == 120_MiB);
  CHECK(phases[1].peak_reserved == 140_MiB);
  CHECK(phases[1].end_reserved == 140_MiB);
  CHECK(phases[1].peak_by_class[static_cast<int>(MemoryClass::activations)] == 40_MiB);
  CHECK(phases[1].peak_by_class[static_cast<int>(MemoryClass::parameters)] == 100_MiB);
  CHECK(phases[1].peak_by_class[static_cast<int>(MemoryClass::temporaries)] == 20_MiB);
  CHECK(phases[0].end == phases[1].begin);
  CHECK(phases[1].end == t.ranks[0].finished);
}

TEST_CASE("device memory outside the allocator counts to what is used") {
  HandProgram p;
  p.program.labels.push_back("CUDA context");
  const auto context = p.program.externals.push_back({300_MiB, program::LabelId{0}});
  p.phase("init").add(program::ExternalAlloc{context});
  p.alloc(p.tensor(100_MiB));
  Machine machine = hand_machine(1);
  machine.gpu.used_by_others = 50_MiB;
  const Timeline t = simulate(hand_workload({p.program}, 1), machine);
  CHECK(t.ranks[0].phases[0].peak_device_used == 450_MiB);
  CHECK(t.ranks[0].external == 350_MiB);
}

TEST_CASE("an allocation that fails ends the job with PyTorch's words") {
  HandProgram p;
  p.phase("load").in("model.layers.3.mlp");
  p.alloc(p.tensor(600_MiB)).alloc(p.tensor(700_MiB));
  const Timeline t = simulate(hand_workload({p.program}, 4), hand_machine(4), {.fold_ranks = true});
  REQUIRE(std::holds_alternative<CudaOutOfMemory>(t.verdict));
  const auto& oom = std::get<CudaOutOfMemory>(t.verdict);
  CHECK(oom.rank == RankId{0});
  CHECK(oom.phase == "load");
  CHECK(oom.scope == "model.layers.3.mlp");
  CHECK(oom.requested == 700_MiB);
  CHECK(oom.tried == 700_MiB);
  CHECK(oom.allocated == 600_MiB);
  CHECK(oom.free == 424_MiB);
  CHECK(oom.message.rfind("CUDA out of memory. Tried to allocate 700.00 MiB (GPU 0; 1024.00 MiB "
                          "total capacity; 600.00 MiB already allocated; 424.00 MiB free; 600.00 "
                          "MiB reserved in total by PyTorch)",
                          0) == 0);
  REQUIRE(t.processes.size() == 4);
  CHECK(t.processes[0].exit_code == 1);
  CHECK(t.processes[3].exit_code == -15);
  CHECK(t.processes[3].signal == "SIGTERM");
  CHECK(t.ranks[0].ops_done == 2);
}

TEST_CASE("a caught failure warns and goes on; a copy from what it left raises") {
  HandProgram p;
  p.program.messages.push_back("Failed to clone() w. The error was {}.");
  p.phase("save").in("w");
  const auto big = p.tensor(900_MiB);
  program::TensorInfo info;
  info.bytes = 200_MiB;
  info.on_failure = program::OnFailure::warn;
  info.warning = program::MessageId{0};
  info.scope = p.scope;
  const auto clone = p.program.tensors.push_back(info);
  p.alloc(big).alloc(clone).alloc(clone).free(clone).free(big).work(1_ms);
  Timeline t = run_one(p);
  CHECK(std::holds_alternative<Fits>(t.verdict));
  REQUIRE(t.ranks[0].warnings.size() == 1);
  const WarningRecord& warning = t.ranks[0].warnings[0];
  CHECK(warning.count == 2);
  CHECK(warning.text.rfind("Failed to clone() w. The error was CUDA out of memory. Tried to "
                           "allocate 200.00 MiB",
                           0) == 0);
  CHECK(warning.text.back() == '.');
  CHECK(warning.free == 124_MiB);
  CHECK(warning.phase == "save");
  CHECK(t.ranks[0].phases[0].warnings == 2);
  CHECK(t.ranks[0].failed_allocs == std::vector<std::uint32_t>{1, 1});

  p.alloc(big).alloc(clone);
  p.add(program::Copy{1, program::CopyDirection::device_to_host, true, false, clone});
  t = run_one(p);
  REQUIRE(std::holds_alternative<Crashed>(t.verdict));
  CHECK(std::get<Crashed>(t.verdict).message == "CUDA error: invalid argument");
  CHECK(std::get<Crashed>(t.verdict).allocated == 900_MiB);
  CHECK(t.processes[0].exit_code == 1);
}

TEST_CASE("a retry gives cached memory back, waits for the device and is counted") {
  HandProgram p;
  const auto a = p.tensor(600_MiB);
  const auto b = p.tensor(700_MiB);
  p.alloc(a).launch(p.kernel(500_MiB)).free(a).alloc(b);
  const Timeline t = run_one(p, 1_GiB, {.record_slices = true});
  CHECK(std::holds_alternative<Fits>(t.verdict));
  CHECK(t.ranks[0].phases[0].alloc_retries == 1);
  CHECK(t.ranks[0].phases[0].peak_reserved == 700_MiB);
  Instant kernel_end{}, last_driver_call{};
  for (const Slice& slice : t.slices) {
    if (slice.kind == SliceKind::kernel) kernel_end = slice.end;
    if (slice.kind == SliceKind::allocator) last_driver_call = slice.begin;
  }
  CHECK(last_driver_call >= kernel_end);
}

// A tensor of the unshard stream, used on the compute stream, freed and wanted again.
Bytes reserved_after_reuse(bool wait_before_reuse) {
  HandProgram p;
  const auto a = p.tensor(100_MiB);
  const auto b = p.tensor(100_MiB);
  p.on(StreamRole::unshard).alloc(a);
  p.on(StreamRole::compute).launch(p.kernel(500_MiB));
  p.add(program::RecordStream{a, StreamRole::compute}).free(a);
  if (wait_before_reuse) p.sync();
  p.on(StreamRole::unshard).alloc(b);
  return run_one(p).ranks[0].phases[0].peak_reserved;
}

TEST_CASE("a block used on another stream is not reused before that stream has passed") {
  CHECK(reserved_after_reuse(false) == 200_MiB);
  CHECK(reserved_after_reuse(true) == 100_MiB);
}

TEST_CASE("external memory that does not fit fails with the words of its owner") {
  HandProgram p;
  p.program.labels.push_back("NCCL communicator");
  const auto nccl = p.program.externals.push_back({600_MiB, program::LabelId{0}});
  p.alloc(p.tensor(500_MiB)).add(program::ExternalAlloc{nccl});
  const Timeline t = run_one(p);
  REQUIRE(std::holds_alternative<CudaOutOfMemory>(t.verdict));
  CHECK(std::get<CudaOutOfMemory>(t.verdict).message.find("NCCL") == 0);
  CHECK(std::get<CudaOutOfMemory>(t.verdict).tensor == "NCCL communicator");
}

TEST_CASE("empty_cache returns what is cached") {
  HandProgram p;
  const auto a = p.tensor(100_MiB);
  p.alloc(a).free(a).add(program::EmptyCache{});
  CHECK(run_one(p).ranks[0].phases[0].end_reserved == 0_MiB);
}

TEST_CASE("all processes of a host count, and the kernel kills one") {
  HandProgram p;
  p.phase("load");
  const auto weights = p.buffer(200_MiB);
  const auto file = p.buffer(900_MiB, HostMemoryKind::file_backed);
  p.add(program::HostAlloc{weights}).add(program::HostAlloc{file});
  p.phase("save").add(program::HostFree{weights});
  Timeline t = simulate(hand_workload({p.program}, 4), hand_machine(4));
  CHECK(std::holds_alternative<Fits>(t.verdict));
  REQUIRE(t.hosts.size() == 1);
  CHECK(t.hosts[0].peak_anonymous == 800_MiB);
  CHECK(t.hosts[0].capacity == 1_GiB);
  REQUIRE(t.hosts[0].phases.size() == 2);
  CHECK(t.hosts[0].phases[1].begin_anonymous == 800_MiB);
  CHECK(t.ranks[0].phases[0].host_anonymous == 200_MiB);

  t = simulate(hand_workload({p.program}, 8), hand_machine(8));
  REQUIRE(std::holds_alternative<HostOutOfMemory>(t.verdict));
  const auto& oom = std::get<HostOutOfMemory>(t.verdict);
  CHECK(oom.phase == "load");
  CHECK(oom.used == 1200_MiB);
  CHECK(oom.capacity == 1_GiB);
  CHECK(oom.message == "Signal 9 (SIGKILL) received by PID of local rank 0");
  CHECK(t.processes[oom.rank.value].exit_code == -9);
  CHECK(t.processes[7].exit_code == -15);
}

TEST_CASE("two hosts each have their own memory") {
  HandProgram p;
  p.add(program::HostAlloc{p.buffer(200_MiB, HostMemoryKind::pinned)});
  const Timeline t = simulate(hand_workload({p.program}, 8), hand_machine(8, 1_GiB, 4));
  CHECK(std::holds_alternative<Fits>(t.verdict));
  REQUIRE(t.hosts.size() == 2);
  CHECK(t.hosts[0].peak_pinned == 800_MiB);
  CHECK(t.hosts[1].peak_pinned == 800_MiB);
  CHECK(t.hosts[1].host == HostId{1});
}

TEST_CASE("memory samples follow the allocator") {
  HandProgram p;
  const auto a = p.tensor(100_MiB);
  p.alloc(a).free(a);
  const Timeline t = run_one(p, 1_GiB, {.record_memory = true});
  REQUIRE(t.memory.size() == 2);
  CHECK(t.memory[0].allocated == 100_MiB);
  CHECK(t.memory[0].op == 0);
  CHECK(t.memory[1].allocated == 0_MiB);
  CHECK(t.memory[1].reserved == 100_MiB);
}

}  // namespace
}  // namespace sim::engine
