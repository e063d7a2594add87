#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kLinear{"linear", "matrix product with a weight, with or without bias"};

namespace {

// The weight is an operand as it stands, or as the value that autocast cast it to.
struct WeightOperand {
  const Weight* weight = nullptr;
  Var cast;
  const TensorType& type() const { return weight != nullptr ? weight->type : cast.type(); }
};

WeightOperand operand_of(GraphBuilder& g, const Weight& w) {
  if (g.facts().autocast && w.type.dtype == DType::f32) return {nullptr, g.autocast_weight(w)};
  return {&w, {}};
}

int add_operand(Node& n, WeightOperand& w) {
  return w.weight != nullptr ? n.in(*w.weight) : n.in(std::move(w.cast));
}

}  // namespace

Var matrix_product(GraphBuilder& g, Var x, const Weight& weight_parameter,
                   const std::optional<Weight>& bias) {
  x = autocast(g, std::move(x));
  WeightOperand w = operand_of(g, weight_parameter);
  WeightOperand b;
  if (bias) b = operand_of(g, *bias);
  const TensorType in = x.type();
  const TensorType weight = w.type();
  TensorType out = in;
  out.shape[-1] = weight.shape[0];
  const std::int64_t rows = in.shape.elements() / in.shape[-1];
  const TensorType flat_in{in.dtype, {rows, in.shape[-1]}};
  const TensorType flat_out{out.dtype, {rows, weight.shape[0]}};

  Node n(g, kLinear);
  const Var kept_weight = w.cast;
  const int wi = add_operand(n, w);
  const Var kept_input = x;
  const int xi = n.in(std::move(x));
  const int bi = bias ? add_operand(n, b) : -1;
  Var y = n.out(out);
  n.workspace();
  n.launch(compute::kGemm, {flat_in, weight}, {flat_out});
  if (n.needs(wi)) n.save(kept_input);
  if (n.needs(xi) && kept_weight) n.save(kept_weight);
  // mm's derivative computes the second factor's gradient first (generated code goes by argument
  // name).
  if (bi >= 0 && n.needs(bi)) {
    n.launch_backward(compute::kReduction, {flat_out}, {{out.dtype, {weight.shape[0]}}});
    n.produce(bi, {out.dtype, {weight.shape[0]}});
  }
  if (n.needs(wi)) {
    n.launch_backward(compute::kGemm,
                      {{out.dtype, {weight.shape[0], rows}}, {in.dtype, {in.shape[-1], rows}}},
                      {weight});
    n.produce(wi, weight);
  }
  if (n.needs(xi)) {
    n.launch_backward(compute::kGemm, {flat_out, {weight.dtype, {in.shape[-1], weight.shape[0]}}},
                      {flat_in});
    n.produce_view(xi, in);  // mm's [rows, in] seen as the input's shape
  }
  return y;
}

}  // namespace sim::plan
