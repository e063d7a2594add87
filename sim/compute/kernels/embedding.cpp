// Rows of a table by index. embedding: in = {weight [v, h], ids [..]}, out = {[.., h]}: only the
// rows that are asked for are read. embedding_backward: in = {grad [.., h], ids [..]}, out = {grad
// weight [v, h]}: the dense gradient is zeroed whole, then rows are added into it.
#include "sim/compute/kernels/kinds.h"
#include "sim/compute/kernels/traffic.h"

namespace sim::compute {

namespace {

Work look_up(const Kernel& kernel) {
  const Bytes rows = bytes_of(kernel.out);
  return {Flops{0}, rows + kernel.in.back().bytes(), rows};
}

Work add_rows(const Kernel& kernel) {
  const TensorType& grad = kernel.in.front();
  return {Flops{static_cast<double>(grad.shape.elements())}, bytes_of(kernel.in) + grad.bytes(),
          bytes_of(kernel.out) + grad.bytes()};
}

}  // namespace

const KernelKind kEmbedding{"embedding", "rows of a table by index", false,    look_up,
                            1,           kStreamingBandwidth,        {.in = 2}};

const KernelKind kEmbeddingBackward{"embedding_backward",
                                    "dense gradient of a table looked up by index",
                                    false,
                                    add_rows,
                                    1,
                                    kStreamingBandwidth,
                                    {.in = 2}};

}  // namespace sim::compute
