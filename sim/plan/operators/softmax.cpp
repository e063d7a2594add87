#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kSoftmax{"softmax", "softmax over the last dimension, in fp32 where asked"};

// softmax(x, dtype=fp32) of a bf16 input converts inside the kernel on CUDA: no fp32 copy of x.
Var softmax(GraphBuilder& g, Var x, DType dtype) {
  const TensorType in = x.type();
  const TensorType out{dtype, in.shape};
  Node n(g, kSoftmax);
  const int xi = n.in(std::move(x));
  Var y = n.out(out);
  n.launch(compute::kSoftmax, {in}, {out});
  n.save(y);
  if (n.needs(xi)) {
    n.launch_backward(compute::kSoftmax, {out, out}, {in});
    n.produce(xi, in);
  }
  return y;
}

}  // namespace sim::plan
