// Device memory that a sum over the rows of a matrix takes besides its result: where rows are many
// and columns few, PyTorch splits each column over thread blocks and merges through global memory.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace sim::plan {

struct ReductionWorkspace {
  Bytes partial_sums, semaphores;  // zero where one block does a column
};

// `rows` x `columns`, contiguous, summed over the rows in fp32.
ReductionWorkspace row_sum_workspace(std::int64_t rows, std::int64_t columns, int multiprocessors);

}  // namespace sim::plan
