#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kDropout{"dropout", "zeroes elements at random and keeps the mask"};

// native_dropout (aten/src/ATen/native/cuda/Dropout.cu): result and a mask of bools, one kernel;
// the backward multiplies the gradient by the mask.
Var dropout(GraphBuilder& g, Var x) {
  const TensorType t = x.type();
  const TensorType mask_type{DType::b1, t.shape};
  Node n(g, kDropout);
  const int xi = n.in(std::move(x));
  Var y = n.out(t);
  Var mask = n.out(mask_type);
  n.launch(compute::kRandom, {t}, {t, mask_type});
  if (n.needs(xi)) {
    n.save(mask);
    n.launch_backward(compute::kElementwise, {t, mask_type}, {t});
    n.produce(xi, t);
  }
  return y;
}

}  // namespace sim::plan
