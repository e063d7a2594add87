#include "sim/compute/kernels/kinds.h"

namespace sim::compute {

bool has_least_operands(const Kernel& kernel) {
  const LeastOperands& least = kernel.kind->least;
  if (kernel.in.size() < static_cast<std::size_t>(least.in)) return false;
  if (kernel.out.size() < static_cast<std::size_t>(least.out)) return false;
  for (int i = 0; i < least.in; ++i) {
    if (kernel.in[static_cast<std::size_t>(i)].shape.rank < least.rank) return false;
  }
  return true;
}

const Catalog<KernelKind>& kernel_catalog() {
  static constexpr const KernelKind* kEntries[] = {&kGemm,
                                                   &kBatchedGemm,
                                                   &kFlashAttentionForward,
                                                   &kFlashAttentionBackward,
                                                   &kSoftmax,
                                                   &kNorm,
                                                   &kElementwise,
                                                   &kReduction,
                                                   &kEmbedding,
                                                   &kEmbeddingBackward,
                                                   &kCopy,
                                                   &kFill,
                                                   &kOptimizer,
                                                   &kRandom};
  static constexpr Catalog<KernelKind> kCatalog{"kernel kind", kEntries};
  return kCatalog;
}

}  // namespace sim::compute
