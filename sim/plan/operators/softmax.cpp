#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kSoftmax{"softmax", "softmax over the last dimension, in fp32 where asked"};

// aten/src/ATen/native/SoftMax.cpp, softmax(x, dim, dtype): an fp16 input of an fp32 result is
// converted inside the kernel (half_to_float); any other is copied to the type asked for first, an
// operator of its own with its own backward. aten/src/ATen/native/cuda/SoftMax.cu,
// softmax_backward_cuda_out, multiplies gradient and output into a tensor of its own before the
// kernel.
Var softmax(GraphBuilder& g, Var x, DType dtype) {
  const bool converts_inside = x.dtype() == DType::f16 && dtype == DType::f32;
  if (!converts_inside) x = cast(g, std::move(x), dtype);
  const TensorType in = x.type();
  const TensorType out{dtype, in.shape};
  Node n(g, kSoftmax);
  const int xi = n.in(std::move(x));
  Var y = n.out(out);
  n.launch(compute::kSoftmax, {in}, {out});
  n.save(y);
  if (n.needs(xi)) {
    n.produce(xi, in);
    const int product = n.allocate(out);
    n.launch_backward(compute::kElementwise, {out, out}, {out});
    n.launch_backward(compute::kSoftmax, {out, out}, {in});
    n.release(product);
  }
  return y;
}

}  // namespace sim::plan
