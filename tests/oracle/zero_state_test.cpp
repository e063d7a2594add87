// Closed forms of ZeRO (arXiv 1910.02054, with DeepSpeed's buckets and page-locked blocks) against
// the simulation, between deepspeed.initialize() and the first step.
#include <algorithm>
#include <bit>
#include <string>

#include "sim/plan/plan.h"
#include "tests/support/simulated_scenario.h"

namespace sim::study {
namespace {

Bytes buffers(const plan::LayerGraph& g) {
  Bytes b{0};
  for (const plan::Buffer& buffer : g.buffers)
    b += round_up(Bytes{buffer.type.shape.elements() * 2}, Bytes{512});
  return b;
}

std::int64_t power_of_two(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
}

const std::vector<Override> kShort{{"job.sequence_length", "64"}, {"job.steps", "1"}};

std::vector<Override> in_a_world_of(const std::string& world) {
  std::vector<Override> overrides = kShort;
  overrides.push_back({"cluster.processes_per_node", world});
  return overrides;
}

// Blocks of the few large tensors are whole segments, of 2 MiB.
constexpr Bytes kRounding = 16_MiB;

TEST_CASE("stages 1 and 2: all weights, and 12 bytes a parameter over the world") {
  for (const std::string scenario : {"zero/llama2-7b-zero1.yaml", "zero/llama2-7b-zero2.yaml"}) {
    for (const std::string world : {"2", "4", "7", "8"}) {
      const Run r = run_of(scenario, in_a_world_of(world));
      const plan::LayerGraph& g = r.stages.plan.graph;
      const std::int64_t all = plan::parameter_count(g), n = std::stoll(world);
      const Bytes held = phase(r, "optimizer_init").end_allocated;
      const Bytes expected = Bytes{2 * all + 12 * (all / n)} + buffers(g);
      INFO(scenario << " world " << world << " held " << held.count << " expected "
                    << expected.count);
      CHECK(held >= expected);
      CHECK(held - expected < kRounding);
    }
  }
}

TEST_CASE("stage 3: 16 bytes a parameter over the world, and one bucket") {
  for (const std::string world : {"2", "4", "7", "8"}) {
    const Run r = run_of("zero/llama2-7b-zero3.yaml", in_a_world_of(world));
    const plan::LayerGraph& g = r.stages.plan.graph;
    const std::int64_t all = plan::parameter_count(g), n = std::stoll(world);
    const Bytes held = phase(r, "optimizer_init").end_allocated;
    const Bytes expected = Bytes{16 * (all / n)} + Bytes{2 * 500'000'000} + buffers(g);
    INFO("world " << world << " held " << held.count << " expected " << expected.count);
    CHECK(held >= expected);
    CHECK(held - expected < kRounding);
  }
}

TEST_CASE("the bucket counts elements") {
  std::vector<Override> halved = kShort;
  halved.push_back({"job.strategy.zero3.reduce_bucket_size", "2.5e8"});
  const Bytes whole =
      phase(run_of("zero/llama2-7b-zero3.yaml", kShort), "optimizer_init").end_allocated;
  const Bytes half =
      phase(run_of("zero/llama2-7b-zero3.yaml", halved), "optimizer_init").end_allocated;
  CHECK((whole - half - Bytes{500'000'000}).count < (1 << 20));
  CHECK((whole - half - Bytes{500'000'000}).count > -(1 << 20));
}

TEST_CASE("offload: 12 bytes a parameter in plain memory, page-locked blocks in powers of two") {
  const std::int64_t n = 8;
  const Run two = run_of("zero/llama2-7b-zero2-offload.yaml", kShort);
  const plan::LayerGraph& g = two.stages.plan.graph;
  std::int64_t all = 0, largest = 0, pieces = 0, blocks = 0;
  for (const plan::Parameter& p : g.parameters) {
    const std::int64_t elements = p.type.shape.elements();
    all += elements;
    largest = std::max(largest, elements);
    pieces += (elements + n - 1) / n;
    blocks += power_of_two(2 * ((elements + n - 1) / n));
  }
  CHECK(phase(two, "optimizer_init").host_anonymous == Bytes{12 * (all / n)});
  CHECK(phase(two, "optimizer_init").host_pinned ==
        Bytes{power_of_two(4 * (all / n)) + power_of_two(2 * largest)});
  // Stage 3 keeps the blocks of the single pieces in its cache when the flat one takes over.
  const Run three = run_of("zero/llama2-7b-zero3-offload.yaml", kShort);
  CHECK(phase(three, "optimizer_init").host_anonymous == Bytes{12 * pieces});
  CHECK(phase(three, "optimizer_init").host_pinned ==
        Bytes{blocks + 2 * power_of_two(2 * pieces) + power_of_two(4 * pieces)});
}

TEST_CASE("frozen weights of the model built in pieces: the page-locked blocks of the pieces") {
  const Run r = run_of("qwen2-72b-lora-zero3.yaml", {{"job.steps", "1"}});
  std::int64_t frozen = 0;
  for (const plan::Parameter& p : r.stages.plan.graph.parameters) {
    if (!p.trainable) frozen += power_of_two(2 * ((p.type.shape.elements() + 7) / 8));
  }
  CHECK(phase(r, "load").host_pinned == Bytes{frozen});
}

// Every setting moves what is alive inside a step; between steps nothing of it may be left.
TEST_CASE("no setting of stage 3 leaks from step to step") {
  const std::string tiny = "../tests/golden/tiny-zero3/scenario.yaml";
  const std::string zero = "job.deepspeed.zero_optimization.";
  for (const std::string live : {"0", "200000", "1e9"}) {
    for (const std::string reuse : {"0", "100000", "1e9"}) {
      for (const std::string prefetch : {"0", "100000", "5e7"}) {
        for (const std::string bucket : {"1", "70000", "5e8"}) {
          for (const std::string overlap : {"true", "false"}) {
            const Run r = run_of(tiny, {{zero + "stage3_max_live_parameters", live},
                                        {zero + "stage3_max_reuse_distance", reuse},
                                        {zero + "stage3_prefetch_bucket_size", prefetch},
                                        {zero + "reduce_bucket_size", bucket},
                                        {zero + "overlap_comm", overlap},
                                        {"job.gradient_accumulation_steps", "5"},
                                        {"job.steps", "4"}});
            INFO(live << " " << reuse << " " << prefetch << " " << bucket << " " << overlap);
            REQUIRE(std::holds_alternative<Fits>(r.report.verdict));
            CHECK(phase(r, "step").end_allocated == phase(r, "step.1").end_allocated);
            CHECK(phase(r, "step").end_allocated == phase(r, "step.3").end_allocated);
            CHECK(phase(r, "step").peak_allocated == phase(r, "step.3").peak_allocated);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sim::study
