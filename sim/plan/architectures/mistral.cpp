#include "sim/plan/architectures/architecture.h"
#include "sim/plan/layers/decoder.h"
#include "sim/scenario/config_reader.h"

namespace sim::plan {

namespace {

Var build(const ModelSpec& model, std::optional<std::int64_t> vocab_size, GraphBuilder& graph,
          ReadContext& context) {
  // MistralConfig: https://huggingface.co/docs/transformers/model_doc/mistral
  const DecoderDefaults defaults{32000, 4096, 14336, 32, 32, 8, 131072, false};
  std::optional<DecoderShape> shape = read_decoder_shape(model, defaults, context);
  if (!shape) return {};
  shape->names.block_class = "MistralDecoderLayer";
  if (vocab_size) shape->vocab_size = *vocab_size;
  return build_decoder(graph, *shape);
}

}  // namespace

extern const Architecture kMistral;
const Architecture kMistral{"MistralForCausalLM", "Mistral 7B, Nemo and Large", build};

}  // namespace sim::plan
