#include "sim/plan/architectures/architecture.h"
#include "sim/plan/layers/decoder.h"
#include "sim/scenario/config_reader.h"

namespace sim::plan {

namespace {

Var build(const ModelSpec& model, std::optional<std::int64_t> vocab_size, GraphBuilder& graph,
          ReadContext& context) {
  std::optional<DecoderShape> shape = read_decoder_shape(model, {}, context);
  if (!shape) return {};
  ConfigReader config(model.config, "", context);
  const auto flag = [&](std::string_view key) {
    return config.find<bool>(key).value_or(Located<bool>{}).value;
  };
  shape->qkv_bias = shape->out_bias = flag("attention_bias");
  shape->mlp_bias = flag("mlp_bias");
  if (context.diagnostics.has_errors()) return {};
  if (vocab_size) shape->vocab_size = *vocab_size;
  return build_decoder(graph, *shape);
}

}  // namespace

extern const Architecture kLlama;
const Architecture kLlama{"LlamaForCausalLM",
                          "Llama 1 to 3, Vicuna, CodeLlama, Yi and whatever else is saved as Llama",
                          build};

}  // namespace sim::plan
