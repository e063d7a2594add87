// The Llama-shaped decoder: embedding, blocks of {RMSNorm, attention, RMSNorm, gated MLP}, norm,
// head. Llama, Vicuna, Mistral, Yi, Qwen2, InternLM and InternLM2 differ in names, biases and
// packing only, which a DecoderShape states.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/plan/layers/layers.h"
#include "sim/scenario/model_spec.h"

namespace sim {
struct ReadContext;
}

namespace sim::plan {

struct DecoderNames {
  std::string_view block_class = "LlamaDecoderLayer";
  std::string_view embedding = "model.embed_tokens";
  std::string_view attention = "self_attn";
  std::string_view packed = "";  // one q, k, v product of this name; empty: three projections
  std::string_view attention_out = "o_proj";
  std::string_view mlp = "mlp";
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string_view attention_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string_view head = "lm_head";
  bool norms_first = false;  // module order: norms before attention and MLP
};

struct DecoderShape {
  std::int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0;
  std::int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0, max_positions = 0;
  bool tied = false;  // the head shares the embedding's weight
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  DecoderNames names;
};

// Defaults of a configuration class for fields that config.json leaves out.
struct DecoderDefaults {
  std::int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008, layers = 32,
               heads = 32;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t max_positions = 2048;
  bool tied = false;
};

// Reads the fields that all these architectures share; nullopt and diagnostics where they are of
// the wrong kind, beyond any model or contradict one another. An absent one takes the configuration
// class's default and files it.
std::optional<DecoderShape> read_decoder_shape(const ModelSpec& model,
                                               const DecoderDefaults& defaults,
                                               ReadContext& context);

// Registers the parameters, runs one micro-batch forward and leaves the loss as the graph's end.
Var build_decoder(GraphBuilder& g, const DecoderShape& shape);

}  // namespace sim::plan
