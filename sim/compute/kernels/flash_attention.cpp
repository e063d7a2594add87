// Attention in one kernel that never writes the scores (FlashAttention-2, and what
// scaled_dot_product_attention picks for half precision).
//
// Forward: in = {q [b, s, h, d], k [b, t, g, d], v [b, t, g, d]}, out = {o [b, s, h, d], logsumexp
// [b, h, s]}; g < h is grouped-query attention. Backward: in = {grad o, q, k, v, o, logsumexp}, out
// = {grad q, grad k, grad v}. A causal kernel skips the masked half of the scores.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

namespace {

// Operations of one product of queries and keys: 2 b h s t d, the masked part left out.
double score_product(const Shape& q, const Shape& k, bool causal) {
  const double all = 2.0 * static_cast<double>(q.elements()) * static_cast<double>(k[1]);
  return causal ? all / 2 : all;
}

// QK^T and PV.
Work forward(const Kernel& kernel) {
  const double product = score_product(kernel.in[0].shape, kernel.in[1].shape, kernel.causal);
  return {Flops{2 * product}, bytes_of(kernel.in), bytes_of(kernel.out)};
}

// The scores once more, then dV, dP, dQ and dK.
Work backward(const Kernel& kernel) {
  const double product = score_product(kernel.in[1].shape, kernel.in[2].shape, kernel.causal);
  return {Flops{5 * product}, bytes_of(kernel.in), bytes_of(kernel.out)};
}

// Of 312 TFLOP/s on A100: 179.5 forward (Azure AI-benchmarking-guide, head_dim 64, length 8192);
// forward and backward together reach 171-176 with head_dim 64 and 196-201 with 128 from length
// 4096 up (Dao-AILab/flash-attention's figure of FlashAttention-2 on A100).
constexpr double kForwardFraction = 0.62;
constexpr double kBackwardFraction = 0.58;

}  // namespace

const KernelKind kFlashAttentionForward{
    "flash_attention_forward", "attention without stored scores", true, forward, kForwardFraction,
    kStreamingBandwidth,       {.in = 3, .out = 1, .rank = 4}};

const KernelKind kFlashAttentionBackward{"flash_attention_backward",
                                         "gradients of attention without stored scores",
                                         true,
                                         backward,
                                         kBackwardFraction,
                                         kStreamingBandwidth,
                                         {.in = 4, .out = 3, .rank = 4}};

}  // namespace sim::compute
