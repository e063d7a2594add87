#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kPackedLinear{"packed_linear", "matrix product with a 4-bit or 8-bit weight"};

namespace {

const Operator kUnpack{"unpack", ""}, kUnpackScales{"unpack_scales", ""};

TensorType scales_type(const Weight& w) {
  return {DType::f32, {(w.type.shape.elements() + kPackedBlock - 1) / kPackedBlock}};
}

// functional.py dequantize_4bit: scales that are quantised themselves are unpacked first and live
// until the function returns.
Var unpack_four_bits(GraphBuilder& g, const Weight& weight) {
  const PackedWeights& packed = *g.facts().packed;
  const TensorType scales = scales_type(weight);
  Var scale;
  if (packed.nested) {
    Node n(g, kUnpackScales);
    scale = n.out(scales);
    n.launch(compute::kElementwise, {{DType::u8, scales.shape}}, {scales});
  }
  const Weight frozen{weight.id, weight.type, false};
  Node n(g, kUnpack);
  n.in(frozen);
  Var full = n.out(weight.type);
  n.launch(compute::kElementwise, {{DType::nf4, weight.type.shape}, scales}, {weight.type});
  return full;
}

// bitsandbytes autograd/_functions.py MatMul4Bit: a product with the unpacked weight, which is gone
// afterwards; the backward unpacks it anew. The input is kept although the weight has no gradient.
Var four_bits(GraphBuilder& g, Var x, const Weight& weight, const std::optional<Weight>& bias) {
  const PackedWeights& packed = *g.facts().packed;
  const TensorType in = x.type();
  const TensorType full{in.dtype, weight.type.shape};
  TensorType out = in;
  out.shape[-1] = weight.type.shape[0];
  const std::int64_t rows = in.shape.elements() / in.shape[-1];
  const TensorType flat_in{in.dtype, {rows, in.shape[-1]}};
  const TensorType flat_out{out.dtype, {rows, out.shape[-1]}};
  Var unpacked = cast(g, unpack_four_bits(g, weight), in.dtype);

  Node n(g, kPackedLinear);
  n.in(std::move(unpacked));
  const Var kept = x;
  const int xi = n.in(std::move(x));
  if (bias) n.in(Weight{bias->id, bias->type, false});
  Var y = n.out(out);
  n.workspace();
  n.launch(compute::kGemm, {flat_in, full}, {flat_out});
  if (!n.needs(xi)) return y;
  n.save(kept);
  const int scales = packed.nested ? n.allocate(scales_type(weight)) : -1;
  int again = n.allocate(weight.type);
  n.launch_backward(compute::kElementwise, {{DType::nf4, weight.type.shape}}, {weight.type});
  if (packed.nested) n.release(scales);
  if (weight.type.dtype != in.dtype) {
    const int low = n.allocate(full);
    n.launch_backward(compute::kCopy, {weight.type}, {full});
    n.release(again);
    again = low;
  }
  n.launch_backward(compute::kGemm, {flat_out, {in.dtype, {in.shape[-1], out.shape[-1]}}},
                    {flat_in});
  n.produce(xi, in);
  n.release(again);
  return y;
}

// MatMul8bitLt: the input as 8-bit rows (and, before 0.45, columns, which are kept), an int32
// product, its scaling to 16 bits; the backward unpacks the weight to 16 bits.
Var eight_bits(GraphBuilder& g, Var x, const Weight& weight, const std::optional<Weight>& bias) {
  const PackedWeights& packed = *g.facts().packed;
  const TensorType in = x.type();
  TensorType out = in;
  out.shape[-1] = weight.type.shape[0];
  const std::int64_t rows = in.shape.elements() / in.shape[-1];
  const TensorType codes{DType::i8, {rows, in.shape[-1]}};
  const TensorType flat_out{in.dtype, {rows, out.shape[-1]}};
  const TensorType sums{DType::i32, {rows, out.shape[-1]}};

  Node n(g, kPackedLinear);
  n.in(Weight{weight.id, weight.type, false});
  const Var kept = x;
  const int xi = n.in(std::move(x));
  if (bias) n.in(Weight{bias->id, bias->type, false});
  Var columns;
  if (packed.transposed_copies) columns = n.out(codes);
  n.temporary(codes);
  n.temporary(sums);
  Var y = n.out(out);
  n.launch(compute::kGemm, {codes, {DType::i8, weight.type.shape}}, {flat_out});
  if (!n.needs(xi)) return y;
  n.save(kept);
  if (columns) n.save(columns);
  const int full = n.allocate({in.dtype, weight.type.shape});
  n.launch_backward(compute::kElementwise, {{DType::i8, weight.type.shape}},
                    {{in.dtype, weight.type.shape}});
  n.launch_backward(compute::kGemm, {flat_out, {in.dtype, {in.shape[-1], out.shape[-1]}}},
                    {{in.dtype, {rows, in.shape[-1]}}});
  n.produce(xi, in);
  n.release(full);
  return y;
}

}  // namespace

// Linear4bit and Linear8bitLt cast the input to the compute type and the result back.
Var packed_product(GraphBuilder& g, Var x, const Weight& weight,
                   const std::optional<Weight>& bias) {
  const PackedWeights& packed = *g.facts().packed;
  const DType asked = x.dtype();
  const bool small = packed.code == PackedWeights::Code::int8;
  x = cast(g, std::move(x), small ? DType::f16 : packed.compute);
  std::optional<Weight> low = bias;
  if (low) low->type.dtype = x.dtype();
  Var y =
      small ? eight_bits(g, std::move(x), weight, low) : four_bits(g, std::move(x), weight, low);
  return cast(g, std::move(y), asked);
}

}  // namespace sim::plan
