// Operations per second of the caching allocator: one allocation or one free is one item.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "sim/memory/caching_allocator.h"

namespace {

using namespace sim;
using namespace sim::memory;

// Sizes of a Llama-2-7B layer: weights, activations of 2048 tokens, statistics, scalars.
constexpr std::int64_t kSizes[] = {
    4096 * 4096 * 2,  4096 * 11008 * 2, 2048 * 4096 * 2, 2048 * 4096 * 4,
    2048 * 11008 * 2, 2048 * 4,         4096 * 2,        512,
    2048 * 32000 * 2};

// A step's rhythm on a cache that holds every size already: `live` tensors come and go, the oldest
// first or at random.
void allocate_and_free(benchmark::State& state, const AllocatorSettings& settings) {
  const auto live = static_cast<std::size_t>(state.range(0));
  DeviceMemory device(Bytes{std::int64_t{1} << 50});
  ModelDriver driver(device);
  CachingAllocator allocator(newest_allocator_profile(), settings, driver,
                             Bytes{std::int64_t{80} << 30});
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes(1 << 14);
  for (Bytes& size : sizes) size = Bytes{kSizes[random() % std::size(kSizes)]};
  std::vector<std::uint32_t> places(sizes.size());
  for (std::uint32_t& place : places) place = static_cast<std::uint32_t>(random() % live);
  std::vector<BlockId> blocks(live);
  std::size_t next = 0;
  for (BlockId& block : blocks) block = allocator.allocate(sizes[next++ % sizes.size()], 0).block;
  // Half of the memory goes back to the cache, so that it is populated and cut up.
  for (std::size_t i = 0; i < live; i += 2) {
    allocator.free(blocks[i]);
    blocks[i] = allocator.allocate(Bytes{512}, 0).block;
  }
  for (auto _ : state) {
    const std::size_t at = next++ % sizes.size();
    BlockId& block = blocks[places[at]];
    allocator.free(block);
    block = allocator.allocate(sizes[at], 0).block;
    benchmark::DoNotOptimize(block);
  }
  state.SetItemsProcessed(state.iterations() * 2);
}

void BM_Default(benchmark::State& state) { allocate_and_free(state, {}); }

void BM_Expandable(benchmark::State& state) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  allocate_and_free(state, settings);
}

// The shortest path: one temporary after the other, as an element-wise chain makes them.
void BM_Temporary(benchmark::State& state) {
  DeviceMemory device(Bytes{std::int64_t{80} << 30});
  ModelDriver driver(device);
  CachingAllocator allocator(newest_allocator_profile(), {}, driver, device.total());
  std::size_t next = 0;
  for (auto _ : state) {
    const BlockId block = allocator.allocate(Bytes{kSizes[next++ % std::size(kSizes)]}, 0).block;
    benchmark::DoNotOptimize(block);
    allocator.free(block);
  }
  state.SetItemsProcessed(state.iterations() * 2);
}

BENCHMARK(BM_Temporary);
BENCHMARK(BM_Default)->Arg(64)->Arg(1024)->Arg(16384);
BENCHMARK(BM_Expandable)->Arg(64)->Arg(1024);

}  // namespace
