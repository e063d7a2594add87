#include "sim/plan/architectures/architecture.h"
#include "sim/plan/layers/decoder.h"
#include "sim/scenario/config_reader.h"

namespace sim::plan {

namespace {

Var build(const ModelSpec& model, std::optional<std::int64_t> vocab_size, GraphBuilder& graph,
          ReadContext& context) {
  const DecoderDefaults defaults{151936, 4096, 22016, 32, 32, 32, 32768, false};  // Qwen2Config
  std::optional<DecoderShape> shape = read_decoder_shape(model, defaults, context);
  if (!shape) return {};
  shape->qkv_bias = true;  // always on; no key says so
  shape->names.block_class = "Qwen2DecoderLayer";
  if (vocab_size) shape->vocab_size = *vocab_size;
  return build_decoder(graph, *shape);
}

}  // namespace

extern const Architecture kQwen2;
const Architecture kQwen2{"Qwen2ForCausalLM", "Qwen 1.5, 2 and 2.5", build};

}  // namespace sim::plan
