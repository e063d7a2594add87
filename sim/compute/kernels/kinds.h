// The kernel kinds by name, for code that writes kernels down. Operands in brackets: what stands in
// Kernel::in and Kernel::out, in order; each kind's file says more.
//
//   Kernel{&kGemm, {{DType::bf16, {2048, 4096}}, {DType::bf16, {11008, 4096}}},
//          {{DType::bf16, {2048, 11008}}}}
#pragma once

#include "sim/compute/kernel.h"

namespace sim::compute {

// {[.., m, k], [n, k], bias?} -> {[.., m, n]}
extern const KernelKind kGemm;
// {[b, m, k], [b, n, k]} -> {[b, m, n]}
extern const KernelKind kBatchedGemm;
// {q [b, s, h, d], k [b, t, g, d], v [b, t, g, d]} -> {o [b, s, h, d], logsumexp [b, h, s]}
extern const KernelKind kFlashAttentionForward;
// {grad o, q, k, v, o, logsumexp} -> {grad q, grad k, grad v}
extern const KernelKind kFlashAttentionBackward;
// any inputs -> any outputs, each read or written once
extern const KernelKind kElementwise;
// any inputs -> smaller outputs: sums, means, norms of gradients
extern const KernelKind kReduction;
// {[.., n], more of that shape} -> {[.., n]}; backward: {grad, result} -> {grad}
extern const KernelKind kSoftmax;
// layer or RMS norm in one kernel: {x [.., h], weights} -> {y [.., h], statistics}
extern const KernelKind kNorm;
// {weight [v, h], ids [..]} -> {[.., h]}
extern const KernelKind kEmbedding;
// {grad [.., h], ids [..]} -> {grad weight [v, h]}
extern const KernelKind kEmbeddingBackward;
// device to device, casts included: {x} -> {y}
extern const KernelKind kCopy;
// {} -> {x}: zeros, ones
extern const KernelKind kFill;
// one update of one or many tensors: {parameters, gradients, states} -> {parameters, states}
extern const KernelKind kOptimizer;
// {x?} -> {y}: dropout masks, random weights
extern const KernelKind kRandom;

}  // namespace sim::compute
