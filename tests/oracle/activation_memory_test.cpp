// What autograd keeps of one Llama layer against the closed form
//   24 T h + 8 T i + 8 T + 4 b a s   (bf16 weights and residual, FlashAttention, no grouped heads)
// with T = b s tokens, h hidden, i intermediate, a heads: two norms of 8 T h + 4 T, rotated q and
// k, v, the attention output, four tensors of the MLP.
#include <set>

#include "sim/plan/graph_builder.h"
#include "sim/plan/layers/decoder.h"

#include "tests/support/catch.h"

namespace sim::plan {
namespace {

Bytes kept_by_block(const LayerGraph& g, const Block& block) {
  std::set<std::uint32_t> storages;
  Bytes bytes{0};
  for (std::uint32_t n = block.nodes.begin; n < block.nodes.end; ++n) {
    for (ValueId v : LayerGraph::slice(g.saved, g.nodes[OpNodeId{n}].saved)) {
      if (!block.values.contains(v.value) || !storages.insert(v.value).second) continue;
      if (g.values[v].type.dtype != DType::i64)
        bytes += g.values[v].type.bytes();  // not the RNG state
    }
  }
  return bytes;
}

struct Case {
  std::int64_t batch, sequence, hidden, intermediate, heads;
};

LayerGraph graph_of(const Case& c, AttentionKind attention) {
  Implementations f;
  f.compute = DType::bf16;
  f.attention = attention;
  f.rotary_from_positions = true;
  f.batch = c.batch;
  f.sequence = c.sequence;
  GraphBuilder g(f, DType::bf16);
  DecoderShape s;
  s.vocab_size = 1000;
  s.hidden_size = c.hidden;
  s.intermediate_size = c.intermediate;
  s.layers = 2;
  s.heads = s.kv_heads = c.heads;
  s.head_dim = c.hidden / c.heads;
  s.max_positions = 4096;
  return g.finish(build_decoder(g, s));
}

TEST_CASE("a layer keeps 24Th + 8Ti + 8T + 4bas bytes with FlashAttention") {
  for (const Case& c :
       {Case{1, 2048, 4096, 11008, 32}, Case{4, 512, 5120, 13824, 40}, Case{3, 128, 256, 512, 4}}) {
    const LayerGraph g = graph_of(c, AttentionKind::flash_attention_2);
    const std::int64_t t = c.batch * c.sequence;
    const Bytes expected{24 * t * c.hidden + 8 * t * c.intermediate + 8 * t +
                         4 * c.batch * c.heads * c.sequence};
    CHECK(kept_by_block(g, g.blocks[BlockId{1}]).count == expected.count);
  }
}

TEST_CASE("unfused attention keeps the scores twice: 6bas^2 more, less the logsumexp") {
  const Case c{2, 256, 1024, 2816, 8};
  const LayerGraph g = graph_of(c, AttentionKind::eager);
  const std::int64_t t = c.batch * c.sequence, square = c.batch * c.heads * c.sequence * c.sequence;
  const Bytes expected{24 * t * c.hidden + 8 * t * c.intermediate + 8 * t + 6 * square};
  CHECK(kept_by_block(g, g.blocks[BlockId{1}]).count == expected.count);
}

}  // namespace
}  // namespace sim::plan
