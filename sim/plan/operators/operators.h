// The operators, one ATen call each: what they read and make, what autograd keeps, and what their
// backward allocates, in PyTorch's order. Sources: torch/csrc/autograd derivatives.yaml and
// FunctionsManual.cpp for the formulas, aten/src/ATen/native for the allocations (torch 2.x).
//
// A Var passed by value is a reference given away: it dies when the operator returns.
#pragma once

#include <optional>

#include "sim/base/catalog.h"
#include "sim/plan/graph_builder.h"

namespace sim::plan {

const Catalog<Operator>& operator_catalog();

// --- linear.cpp: torch.nn.functional.linear; under autocast both sides are cast first.
// Weight [out, in], bias [out].
Var matrix_product(GraphBuilder& g, Var x, const Weight& weight, const std::optional<Weight>& bias);

// --- packed_linear.cpp: the same with a packed weight, which is unpacked for the moment
Var packed_product(GraphBuilder& g, Var x, const Weight& weight, const std::optional<Weight>& bias);

// --- dropout.cpp
Var dropout(GraphBuilder& g, Var x);

// --- matmul.cpp: batched product [.., m, k] x [.., k, n] -> [.., m, n]
Var matmul(GraphBuilder& g, Var a, Var b);
// inv_freq x positions in fp32: [b, d, 1] x [b, 1, s] -> [b, d, s]
Var rotary_angles(GraphBuilder& g, BufferId inv_freq, Var positions, std::int64_t d);

// --- embedding.cpp: rows of `table` by ids [b, s] -> [b, s, h]
Var embedding(GraphBuilder& g, Var ids, const Weight& table);

// --- cast.cpp: Tensor.to(dtype); the same Var where nothing changes
Var cast(GraphBuilder& g, Var x, DType dtype);
Var cast_weight(GraphBuilder& g, const Weight& w, DType dtype);
// x in autocast's dtype where autocast is on and x is fp32
Var autocast(GraphBuilder& g, Var x);

// --- pointwise.cpp
Var silu(GraphBuilder& g, Var x);
Var rsqrt(GraphBuilder& g, Var x);
Var neg(GraphBuilder& g, Var x);
Var add_scalar(GraphBuilder& g, Var x);
Var scale(GraphBuilder& g, Var x);                        // times or divided by a Python number
Var square(GraphBuilder& g, Var x);                       // x.pow(2)
Var clamp_scores(GraphBuilder& g, Var x);                 // torch.max(x, tensor(finfo.min))
Var add(GraphBuilder& g, Var a, Var b);                   // broadcasts; promotes dtypes
Var add_in_place(GraphBuilder& g, Var a, Var b);          // a += b
Var mul(GraphBuilder& g, Var a, Var b);                   // broadcasts; promotes dtypes
Var mul_weight(GraphBuilder& g, const Weight& w, Var x);  // w [h] times x [.., h]
Var trig(GraphBuilder& g, Var x);                         // cos or sin of what needs no grad

// --- reduce.cpp
Var mean_last(GraphBuilder& g, Var x);  // mean(-1, keepdim=True)

// --- shape.cpp
Var view(GraphBuilder& g, Var x, Shape shape);  // view, transpose, unsqueeze, expand: no memory
// [b, s, heads * d] seen as [b, heads, s, d]. `turned`: its gradient comes back laid out by heads,
// so the reshape of the backward copies it.
Var split_heads(GraphBuilder& g, Var x, Shape shape, bool turned);
Var slice(GraphBuilder& g, Var x,
          Shape shape);                  // x[..., a:b]: no memory; its backward pads with zeros
Var contiguous(GraphBuilder& g, Var x);  // copy
Var clone(GraphBuilder& g, Var x);
Var cat(GraphBuilder& g, Var a, Var b, Shape shape);
Var stack3(GraphBuilder& g, Var a, Var b, Var c, Shape shape);
Var gather_rows(GraphBuilder& g, BufferId table, Var index, TensorType out);  // table[position_ids]
Var repeat_heads(GraphBuilder& g, Var x, Shape shape);  // expand + reshape: a copy
Var make(GraphBuilder& g, TensorType type);  // arange, full: new memory that needs no grad

// --- softmax.cpp
Var softmax(GraphBuilder& g, Var x, DType dtype);

// --- attention.cpp: fused kernels on [b, s, heads, d] (flash_attn) or [b, heads, s, d] (SDPA)
Var flash_attention(GraphBuilder& g, Var q, Var k, Var v, Shape out);
Var flash_attention_packed(GraphBuilder& g, Var qkv, Shape out);
Var sdpa_flash(GraphBuilder& g, Var q, Var k, Var v);
Var sdpa_cudnn(GraphBuilder& g, Var q, Var k, Var v);
Var sdpa_efficient(GraphBuilder& g, Var q, Var k, Var v, std::optional<Var> mask);

// --- cross_entropy.cpp: log_softmax + nll_loss on [n, v] logits, [n] labels; a scalar
Var cross_entropy(GraphBuilder& g, Var logits, Var labels);
// log_softmax + gather: the label's entry of each row [n]
Var token_log_probabilities(GraphBuilder& g, Var logits, Var labels);

}  // namespace sim::plan
