#include "sim/plan/layers/decoder.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/config_reader.h"

namespace sim::plan {

namespace {

constexpr std::string_view kClassDefault =
    "config.json leaves it out: default of the configuration class";

// Bounds beyond any model, within which products of sizes stay within 64 bits.
constexpr Limits<std::int64_t> kLayers{1, 10'000}, kHeads{1, 1 << 16}, kHidden{1, 1 << 20},
    kIntermediate{1, 1 << 22}, kVocabulary{1, 1 << 24}, kPositions{1, 1 << 24};

// Checks that do not shape the graph: a number that is none is a mistake all the same.
void check_numbers(ConfigReader& config) {
  for (const std::string_view key : {"rms_norm_eps", "rope_theta", "initializer_range"}) {
    config.find<double>(key);
  }
}

}  // namespace

std::optional<DecoderShape> read_decoder_shape(const ModelSpec& model,
                                               const DecoderDefaults& defaults,
                                               ReadContext& context) {
  Diagnostics& diagnostics = context.diagnostics;
  const std::size_t errors = diagnostics.error_count();
  ConfigReader config(model.config, "", context);
  const auto assume = [&](std::string_view key, std::string value) {
    if (context.assumptions == nullptr || config.has(key)) return;
    context.assumptions->add("model." + std::string(key), std::move(value),
                             std::string(kClassDefault));
  };
  const auto count = [&](std::string_view key, std::int64_t fallback, Limits<std::int64_t> limits) {
    assume(key, write_value(fallback));
    return config.find<std::int64_t>(key, limits)
        .value_or(Located<std::int64_t>{fallback, config.at()});
  };
  DecoderShape s;
  s.vocab_size = count("vocab_size", defaults.vocab_size, kVocabulary).value;
  s.hidden_size = count("hidden_size", defaults.hidden_size, kHidden).value;
  s.intermediate_size = count("intermediate_size", defaults.intermediate_size, kIntermediate).value;
  s.layers = count("num_hidden_layers", defaults.layers, kLayers).value;
  const auto heads = count("num_attention_heads", defaults.heads, kHeads);
  s.heads = heads.value;
  const auto kv =
      count("num_key_value_heads", defaults.kv_heads > 0 ? defaults.kv_heads : heads.value, kHeads);
  s.kv_heads = kv.value;
  const auto head_dim = config.find<std::int64_t>("head_dim", kHeads);
  s.max_positions = count("max_position_embeddings", defaults.max_positions, kPositions).value;
  assume("tie_word_embeddings", write_value(defaults.tied));
  s.tied =
      config.find<bool>("tie_word_embeddings").value_or(Located<bool>{defaults.tied, {}}).value;
  check_numbers(config);
  if (diagnostics.error_count() > errors) return std::nullopt;

  if (!head_dim && s.hidden_size % s.heads != 0) {
    diagnostics.error(
        heads.at,
        "num_attention_heads = " + std::to_string(s.heads) +
            " does not divide hidden_size = " + std::to_string(s.hidden_size),
        "give head_dim where the heads are not hidden_size / num_attention_heads wide");
  }
  if (s.heads % s.kv_heads != 0) {
    diagnostics.error(kv.at,
                      "num_key_value_heads = " + std::to_string(s.kv_heads) +
                          " does not divide num_attention_heads = " + std::to_string(s.heads));
  }
  if (diagnostics.error_count() > errors) return std::nullopt;
  s.head_dim = head_dim ? head_dim->value : s.hidden_size / s.heads;
  return s;
}

namespace {

struct Layer {
  std::string path;
  BlockId block;
  RmsNorm attention_norm, mlp_norm;
  Attention attention;
  GatedMlp mlp;
};

std::string join(const std::string& path, std::string_view name) {
  return path + "." + std::string(name);
}

Attention attention_module(GraphBuilder& g, const std::string& path, const DecoderShape& s) {
  Attention a;
  a.path = path;
  a.heads = s.heads;
  a.kv_heads = s.kv_heads;
  a.head_dim = s.head_dim;
  const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  if (!s.names.packed.empty()) {
    a.qkv = linear_module(g, join(path, s.names.packed), q + 2 * kv, s.hidden_size, s.qkv_bias);
  } else {
    a.q = linear_module(g, path + ".q_proj", q, s.hidden_size, s.qkv_bias);
    a.k = linear_module(g, path + ".k_proj", kv, s.hidden_size, s.qkv_bias);
    a.v = linear_module(g, path + ".v_proj", kv, s.hidden_size, s.qkv_bias);
  }
  a.out = linear_module(g, join(path, s.names.attention_out), s.hidden_size, q, s.out_bias);
  a.rotary.head_dim = s.head_dim;
  if (!g.facts().rotary_from_positions) {
    a.rotary = rotary_module(g, path + ".rotary_emb", s.head_dim, s.max_positions);
  }
  return a;
}

GatedMlp mlp_module(GraphBuilder& g, const std::string& path, const DecoderShape& s) {
  GatedMlp m;
  m.path = path;
  const auto wide = [&](std::string_view name) {
    return linear_module(g, join(path, name), s.intermediate_size, s.hidden_size, s.mlp_bias);
  };
  m.gate = wide(s.names.gate);
  if (!g.facts().mlp_down_before_up) m.up = wide(s.names.up);
  m.down =
      linear_module(g, join(path, s.names.down), s.hidden_size, s.intermediate_size, s.mlp_bias);
  if (g.facts().mlp_down_before_up) m.up = wide(s.names.up);
  return m;
}

Layer layer_module(GraphBuilder& g, const std::string& prefix, std::int64_t index,
                   const DecoderShape& s) {
  Layer layer;
  layer.path = fmt::format("{}model.layers.{}", prefix, index);
  layer.block = g.begin_block_parameters(layer.path, s.names.block_class);
  const auto norms = [&] {
    layer.attention_norm =
        rms_norm_module(g, join(layer.path, s.names.attention_norm), s.hidden_size);
    layer.mlp_norm = rms_norm_module(g, join(layer.path, s.names.mlp_norm), s.hidden_size);
  };
  if (s.names.norms_first) norms();
  layer.attention = attention_module(g, join(layer.path, s.names.attention), s);
  layer.mlp = mlp_module(g, join(layer.path, s.names.mlp), s);
  if (!s.names.norms_first) norms();
  g.end_block_parameters(layer.block);
  return layer;
}

Var run_layer(GraphBuilder& g, const Layer& layer, const Var& input,
              const AttentionInputs& inputs) {
  g.begin_block(layer.block);
  auto scope = g.scope(layer.path);
  Var residual = input;
  Var h = rms_norm(g, input, layer.attention_norm);
  h = attention_block(g, h, layer.attention, inputs);
  h = add(g, residual, h);
  residual = h;
  h = rms_norm(g, std::move(h), layer.mlp_norm);
  h = gated_mlp(g, h, layer.mlp);
  h = add(g, residual, h);
  g.end_block(layer.block, h);
  return h;
}

struct Decoder {
  std::string prefix;  // of all its modules' paths
  Weight table;
  std::vector<Layer> layers;
  RmsNorm norm;
  Linear head;
  BufferId inv_freq;  // of the model, where the release keeps it there
};

Decoder decoder_modules(GraphBuilder& g, const DecoderShape& s, const std::string& prefix) {
  Decoder d;
  d.prefix = prefix;
  d.table =
      g.parameter(prefix + std::string(s.names.embedding), "weight", {s.vocab_size, s.hidden_size});
  for (std::int64_t i = 0; i < s.layers; ++i) d.layers.push_back(layer_module(g, prefix, i, s));
  d.norm = rms_norm_module(g, prefix + "model.norm", s.hidden_size);
  if (g.facts().rotary_from_positions) {
    d.inv_freq =
        g.buffer(prefix + "model.rotary_emb", "inv_freq", {DType::f32, {s.head_dim / 2}}, false);
  }
  d.head.path = prefix + std::string(s.names.head);
  d.head.weight = d.table;
  if (!s.tied) {
    d.head = linear_module(g, d.head.path, s.vocab_size, s.hidden_size, false, LinearRole::head);
  }
  return d;
}

Var run_layers(GraphBuilder& g, const DecoderShape& s, const Decoder& d, const Var& ids) {
  const std::int64_t b = ids.shape()[0], n = ids.shape()[1];
  Var embedded;
  {
    auto scope = g.scope(d.prefix + std::string(s.names.embedding));
    embedded = embedding(g, ids, d.table);
    if (g.facts().input_embeddings_need_grad && g.grad_enabled()) g.require_grad(embedded);
  }
  auto scope = g.scope(d.prefix + "model");
  Var positions = make(g, {DType::i64, {1, n}});
  Var mask;
  if (g.facts().masks_materialised) mask = make(g, {embedded.dtype(), {b, 1, n, n}});
  RotaryValues rotary;
  AttentionInputs inputs{&positions, mask ? &mask : nullptr, nullptr};
  if (g.facts().rotary_from_positions) {
    rotary = rotary_values(g, {s.head_dim, {}, {}, d.inv_freq}, positions, embedded.dtype());
    inputs.rotary = &rotary;
  }
  Var hidden = embedded;  // inputs_embeds stays a local to the end
  for (const Layer& layer : d.layers) hidden = run_layer(g, layer, hidden, inputs);
  const Var layer_outputs = hidden;
  return rms_norm(g, std::move(hidden), d.norm);
}

struct DecoderOutput {
  Var logits;
  Var hidden;  // a local of the causal model's forward until its loss is computed
};

DecoderOutput run_decoder(GraphBuilder& g, const DecoderShape& s, const Decoder& d,
                          const Var& ids) {
  Var hidden = run_layers(g, s, d, ids);
  auto scope = g.scope(d.head.path);
  Var logits = linear(g, hidden, d.head);
  return {std::move(logits), std::move(hidden)};
}

// The reference's logits: of a copy of the model, or of the policy with its adapters switched off.
Var run_reference(GraphBuilder& g, const DecoderShape& s, const Decoder& policy,
                  const std::optional<Decoder>& copy, const Var& ids, const Var& labels) {
  const auto no_grad = g.no_grad();
  DecoderOutput out;
  if (copy) {
    out = run_decoder(g, s, *copy, ids);
  } else {
    const auto plain = g.without_adapters();
    Decoder again = policy;
    for (Layer& layer : again.layers) layer.block = g.repeat_block(layer.block);
    out = run_decoder(g, s, again, ids);
  }
  return language_model_loss(g, std::move(out.logits), labels, false).logits;
}

}  // namespace

Var build_decoder(GraphBuilder& g, const DecoderShape& s) {
  const Decoder policy = decoder_modules(g, s, "");
  std::optional<Decoder> copy;
  if (!g.facts().reference.empty()) {
    const auto frozen = g.frozen_copy();
    copy = decoder_modules(g, s, g.facts().reference + ".");
  }
  const Shape batch{g.facts().batch, g.facts().sequence};
  const Var ids = g.input({DType::i64, batch});
  const Var labels = g.facts().labels_are_ids ? ids : g.input({DType::i64, batch});
  const Var attention_mask = g.facts().padding_mask ? g.input({DType::b1, batch}) : Var();
  DecoderOutput out = run_decoder(g, s, policy, ids);
  if (!g.facts().preference_pairs) {
    auto scope = g.scope("loss");
    return std::move(language_model_loss(g, std::move(out.logits), labels).loss);
  }
  // The model's own loss is computed, too, as the batch has labels.
  Var logits = language_model_loss(g, std::move(out.logits), labels, false).logits;
  out.hidden.reset();
  Var reference = run_reference(g, s, policy, copy, ids, labels);
  auto scope = g.scope("loss");
  return preference_loss(g, std::move(logits), std::move(reference), labels);
}

}  // namespace sim::plan
