// How many ops the engine does a second.
#include <benchmark/benchmark.h>

#include "tests/unit/engine/hand_program.h"

namespace sim::engine {
namespace {

constexpr int kLayers = 32;
constexpr int kTensors = 20;  // per layer

// Training steps of 32 layers: per layer 20 tensors and 20 kernels forward, as many backward, with
// one all-gather on its own stream and its cross-stream free per layer and direction.
program::Program training(int steps) {
  HandProgram p;
  std::vector<program::KernelId> kernels;
  for (int i = 0; i < kTensors; ++i) kernels.push_back(p.kernel(Bytes{(i + 1) * 1'000'000}));
  const auto gather = p.collective(CollectiveKind::all_gather, 400_MiB);
  std::vector<program::TensorId> saved;
  for (int i = 0; i < kLayers * kTensors; ++i) {
    saved.push_back(p.tensor(Bytes{(i % 7 + 1) * 3'000'000}, MemoryClass::activations));
  }
  const auto flat = p.tensor(400_MiB, MemoryClass::parameters);
  const auto event = p.event();
  const auto unshard = [&] {
    p.on(StreamRole::unshard).alloc(flat).call(gather).add(program::RecordEvent{event});
    p.on(StreamRole::compute).add(program::WaitEvent{event});
  };
  const auto reshard = [&] { p.add(program::RecordStream{flat, StreamRole::compute}).free(flat); };
  for (int step = 0; step < steps; ++step) {
    p.phase("step");
    for (int i = 0; i < kLayers * kTensors; ++i) {
      if (i % kTensors == 0) unshard();
      p.alloc(saved[static_cast<std::size_t>(i)])
          .launch(kernels[static_cast<std::size_t>(i % kTensors)]);
      if (i % kTensors == kTensors - 1) reshard();
    }
    for (int i = kLayers * kTensors - 1; i >= 0; --i) {
      if (i % kTensors == kTensors - 1) unshard();
      p.launch(kernels[static_cast<std::size_t>(i % kTensors)])
          .free(saved[static_cast<std::size_t>(i)]);
      if (i % kTensors == 0) reshard();
    }
    p.sync();
  }
  return p.program;
}

void run(benchmark::State& state, std::uint32_t ranks, bool fold) {
  const program::Workload workload = hand_workload({training(20)}, ranks);
  const Machine machine = hand_machine(ranks, 80_GiB);
  std::int64_t ops = 0;
  for (auto _ : state) {
    const Timeline t = simulate(workload, machine, {.fold_ranks = fold});
    for (const RankRecord& record : t.ranks) ops += record.ops_done;
    benchmark::DoNotOptimize(t.ranks.front().finished);
  }
  state.SetItemsProcessed(ops);
}

void one_class(benchmark::State& state) { run(state, 8, true); }
BENCHMARK(one_class)->Unit(benchmark::kMillisecond);

void thousand_ranks_folded(benchmark::State& state) { run(state, 1024, true); }
BENCHMARK(thousand_ranks_folded)->Unit(benchmark::kMillisecond);

void eight_ranks_unfolded(benchmark::State& state) { run(state, 8, false); }
BENCHMARK(eight_ranks_unfolded)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sim::engine
