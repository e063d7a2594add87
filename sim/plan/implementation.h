// Which implementation of each logical operator runs: facts of the installed releases and the
// trainer, as values. Filled by the program floor's libraries and trainers (the only places that
// compare versions); read by layers/ and architectures/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/terms.h"

namespace sim::plan {

enum class AttentionKind : std::uint8_t {
  eager,
  sdpa_cudnn,  // the release prefers cuDNN on this GPU
  sdpa_flash,
  sdpa_efficient,
  sdpa_math,
  flash_attention_2,
  flash_packed  // q, k, v stacked and unpadded into one packed kernel (FastChat's patch)
};

enum class LossKind : std::uint8_t {
  shift_then_upcast,  // transformers < 4.31: logits stay bf16, cross-entropy upcasts under autocast
  upcast_then_shift,  // 4.31 ..: logits.float(), contiguous shifted copy
  upcast_then_pad     // newest: labels are padded instead, logits.float() is used whole
};

// How the weights of matrix products are held where they are packed: 4-bit codes or 8-bit integers,
// with a scale for each block of the weight (4 bits) or row (8 bits).
struct PackedWeights {
  enum class Code : std::uint8_t { nf4, fp4, int8 };
  Code code = Code::nf4;
  bool nested = false;             // the scales themselves are quantised
  DType storage = DType::u8;       // element type of the packed tensor
  DType unpacked = DType::f16;     // what a weight is unpacked to
  DType compute = DType::f32;      // of the product
  bool transposed_copies = false;  // 8 bits: the activations' column-major copy is kept
};
constexpr std::int64_t kPackedBlock = 64;   // weights that share a scale
constexpr std::int64_t kNestedBlock = 256;  // scales that share a scale of their own

// Trainable low-rank products beside frozen linear layers.
struct LowRankAdapters {
  std::int64_t rank = 0;
  double dropout = 0;
  DType dtype = DType::f32;
  bool all_linear = false;         // every linear layer but the head; else those named
  std::vector<Named> targets;      // the end of a linear layer's path, or the path
  bool wraps_base = true;          // the frozen layer is a child named base_layer
  bool clones_base_output = true;  // of packed layers, before the sum
  bool adds_in_place = false;
};

struct Implementations {
  AttentionKind attention = AttentionKind::eager;
  bool attention_clamps_scores = false;  // torch.max(scores, finfo.min): transformers 4.28 - 4.30
  LossKind loss = LossKind::upcast_then_shift;
  bool loss_function_upcasts =
      false;                        // the fp32 logits are a local of it; the model returns its own
  bool mlp_down_before_up = false;  // module order gate, down, up (< 4.31), else gate, up, down
  bool norm_multiplies_input = false;   // LlamaRMSNorm of < 4.31 multiplies the input itself
  bool rotary_cache_per_layer = false;  // cos and sin tables as buffers of every layer
  bool rotary_from_positions = false;   // cos and sin computed once per forward by the model
  bool sdpa_groups_heads = false;       // SDPA takes fewer key than query heads (enable_gqa)
  bool labels_are_ids = false;          // the script passes one tensor as both
  bool padding_mask = true;             // the batch brings an attention mask
  bool masks_materialised = false;      // a [b,1,s,s] causal mask is made in forward
  bool inv_freq_persistent = false;     // rotary inv_freq stands in the state dict
  bool rotary_cache_in_weight_type =
      false;  // those tables have the type that weights are loaded in
  std::optional<PackedWeights> packed;
  std::optional<LowRankAdapters> adapters;  // all other parameters are frozen then
  bool input_embeddings_need_grad = false;  // the embedding's output is made to ask for a gradient
  bool casts_unpacked = false;    // frozen 16-bit parameters are made fp32 when adapters are added
  std::optional<DType> frozen;    // their type in training, where it is not that of loading
  std::optional<DType> cast_to;   // a wrapper makes every floating parameter and buffer this type
  bool preference_pairs = false;  // DPO: policy and reference see chosen and rejected sequences
  std::string
      reference;  // prefix of a frozen copy of the model; empty: the policy without adapters
  // Precision of one forward.
  DType compute = DType::f32;  // of the parameters as operators see them
  std::optional<DType> autocast;
  bool autocast_caches_weights = true;  // leaf fp32 parameters that require grad; not FSDP's views
  bool tf32 = false;
  std::int64_t batch = 1, sequence = 1;
  int multiprocessors = 0;  // of the GPU: sums split over them
};

}  // namespace sim::plan
