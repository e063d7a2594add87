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
  ConfigReader config(model.config, "", context);
  const bool bias = config.find<bool>("bias").value_or(Located<bool>{true, {}}).value;
  shape->qkv_bias = shape->out_bias = bias;
  shape->names.block_class = "InternLMDecoderLayer";
  if (vocab_size) shape->vocab_size = *vocab_size;
  return build_decoder(graph, *shape);
}

}  // namespace

extern const Architecture kInternlm;
const Architecture kInternlm{"InternLMForCausalLM",
                             "InternLM (first generation): Llama with biased attention", build};

}  // namespace sim::plan
