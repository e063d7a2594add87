#include "sim/plan/architectures/architecture.h"
#include "sim/plan/layers/decoder.h"
#include "sim/scenario/config_reader.h"

namespace sim::plan {

namespace {

Var build(const ModelSpec& model, std::optional<std::int64_t> vocab_size, GraphBuilder& graph,
          ReadContext& context) {
  const DecoderDefaults defaults{103168, 4096, 11008, 32, 32, 0, 2048, false};
  std::optional<DecoderShape> shape = read_decoder_shape(model, defaults, context);
  if (!shape) return {};
  DecoderNames& names = shape->names;
  names.block_class = "InternLM2DecoderLayer";
  names.embedding = "model.tok_embeddings";
  names.attention = "attention";
  names.packed = "wqkv";
  names.attention_out = "wo";
  names.mlp = "feed_forward";
  names.gate = "w1";
  names.up = "w3";
  names.down = "w2";
  names.attention_norm = "attention_norm";
  names.mlp_norm = "ffn_norm";
  names.head = "output";
  if (vocab_size) shape->vocab_size = *vocab_size;
  return build_decoder(graph, *shape);
}

}  // namespace

extern const Architecture kInternlm2;
const Architecture kInternlm2{"InternLM2ForCausalLM", "InternLM2 and 2.5: packed q, k, v", build};

}  // namespace sim::plan
