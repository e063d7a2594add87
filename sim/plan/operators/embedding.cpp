#include "sim/compute/kernels/kinds.h"
#include "sim/plan/operators/kinds.h"
#include "sim/plan/operators/operators.h"

namespace sim::plan {

const Operator kEmbedding{"embedding", "rows of a table by token id"};

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
  if (n.needs(wi)) {
    // embedding_dense_backward sorts the ids (original and sorted positions, int64) when there are
    // more than 3072 of them; the gradient itself is dense.
    const std::int64_t tokens = index.shape.elements();
    const bool sorts = tokens > 3072;
    const int sorted = sorts ? n.allocate({DType::i64, {2, tokens}}) : 0;
    n.launch_backward(compute::kEmbeddingBackward, {out, index}, {table.type});
    n.produce(wi, table.type);
    if (sorts) n.release(sorted);
  }
  return y;
}

}  // namespace sim::plan
