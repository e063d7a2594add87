// Closed forms of fully sharded training (ZeRO paper, arXiv 1910.02054, stage 3) against the
// simulation: fp32 parameters and two AdamW states are 12 bytes a parameter over N ranks; a full
// state dict gathered to the host adds at most the largest flat parameter.
#include <string>

#include "sim/plan/plan.h"
#include "tests/support/simulated_scenario.h"

namespace sim::study {
namespace {

Bytes buffers(const plan::LayerGraph& g, std::int64_t bits_each) {
  Bytes b{0};
  for (const plan::Buffer& buffer : g.buffers) {
    b += round_up(Bytes{buffer.type.shape.elements() * bits_each / 8}, Bytes{512});
  }
  return b;
}

TEST_CASE("between steps a rank holds 12 bytes a parameter over the world") {
  for (const std::string world : {"2", "4", "5"}) {
    const Run r = run_of("vicuna-7b-fsdp-save-offload.yaml", {{"cluster.processes_per_node", world},
                                                              {"job.sequence_length", "64"},
                                                              {"observed.free", "30 GiB"},
                                                              {"cluster.node", "dgx-a100-80gb"},
                                                              {"observed.total", "79.35 GiB"}});
    const plan::LayerGraph& g = r.stages.plan.graph;
    const std::int64_t n = std::stoll(world);
    const Bytes state{12 * ((plan::parameter_count(g) + n - 1) / n)};
    const Bytes workspaces{2 * 8'519'680};
    const Bytes held = phase(r, "step").end_allocated;
    const Bytes expected = state + buffers(g, 16) + workspaces;
    // Each flat parameter is padded to the world and each block rounded or left whole: under 1 MiB
    // a tensor.
    const std::int64_t tensors = 3 * (static_cast<std::int64_t>(g.blocks.size()) + 1);
    INFO("world " << world << " held " << held.count << " expected " << expected.count);
    CHECK(held >= expected);
    CHECK(held - expected < Bytes{tensors << 20});
  }
}

TEST_CASE("a state dict gathered to the host peaks at the state and the largest flat parameter") {
  const Run r = run_of("vicuna-7b-fsdp-save-offload.yaml", {});
  const plan::LayerGraph& g = r.stages.plan.graph;
  std::int64_t root = 0, layer = 0;
  for (std::uint32_t p = 0; p < g.parameters.size(); ++p) {
    const std::int64_t elements = g.parameters[plan::ParameterId{p}].type.shape.elements();
    const bool in_block = g.blocks[plan::BlockId{0}].parameters.contains(p);
    if (in_block) layer += elements;
    bool any = false;
    for (const plan::Block& b : g.blocks) any |= b.parameters.contains(p);
    if (!any) root += elements;
  }
  const Bytes rise = phase(r, "save").peak_allocated - phase(r, "step.3").end_allocated;
  const Bytes expected{4 * std::max(root, layer)};
  CHECK(rise >= expected);
  CHECK(rise - expected < 2_MiB);
  // Rank 0 keeps a clone of everything and, while it works, the root's flat copy.
  const Bytes host = phase(r, "save").host_anonymous;
  CHECK(host.count == 4 * (plan::parameter_count(g) + root));
}

}  // namespace
}  // namespace sim::study
