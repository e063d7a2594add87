#include <algorithm>

#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kEmbedding{"embedding", "rows of a table by token id"};

namespace {

// embedding_dense_backward (aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu):
// more than 3072 ids are sorted, and each run of equal ids is summed in pieces of ten rows, in
// fp32.
void embedding_backward(Node& n, int weight, const TensorType& table, const TensorType& gradient,
                        const TensorType& ids) {
  constexpr std::int64_t kUnsorted = 3072, kRowsPerPiece = 10;
  const std::int64_t tokens = ids.shape.elements(), width = table.shape[1];
  if (tokens <= kUnsorted) {
    n.produce(weight, table);
    n.launch_backward(compute::kEmbeddingBackward, {gradient, ids}, {table});
    return;
  }
  const std::int64_t runs = std::min(tokens, table.shape[0]);
  const std::int64_t pieces = tokens / kRowsPerPiece + runs;
  const auto integers = [&n](std::int64_t count) { return n.allocate({DType::i64, {count}}); };
  const int sorted = integers(tokens), original = integers(tokens);
  n.produce(weight, table);
  const int starts = integers(tokens);
  const int per_run = integers(runs), first_of_run = integers(runs), first = integers(pieces);
  const int sums = n.allocate({DType::f32, {pieces, width}});
  n.launch_backward(compute::kEmbeddingBackward, {gradient, ids}, {table});
  for (const int temp : {sums, first, first_of_run, per_run, starts, original, sorted})
    n.release(temp);
}

}  // namespace

Var embedding(GraphBuilder& g, Var ids, const Weight& table) {
  const TensorType index = ids.type();
  const TensorType out{table.type.dtype, {index.shape[0], index.shape[1], table.type.shape[1]}};

  Node n(g, kEmbedding);
  const int wi = n.in(table);
  const Var kept = ids;
  n.in(std::move(ids));
  Var y = n.out(out);
  n.launch(compute::kEmbedding, {table.type, index}, {out});
  n.save(kept);
  if (n.needs(wi)) embedding_backward(n, wi, table.type, out, index);
  return y;
}

}  // namespace sim::plan
