// Programs + Machine -> Timeline. A pure function: no clock, no file, no global; two calls give the
// same bytes. Ranks of one class (same program, equal place) are simulated once; a collective that
// not all members enter is a Hang, an allocation that fails a CudaOutOfMemory, and so on: results,
// not errors.
//
// The first failure in time ends the job. The records of the other ranks then reach at least up to
// that time; a little further where nothing they did could matter to others.
#pragma once

#include "sim/engine/machine.h"
#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

struct SimulateOptions {
  bool record_slices = false;  // fill Timeline::slices
  bool record_memory = false;  // fill Timeline::memory
  // Fill Timeline::allocator_events and RankRecord::segments; runs every iteration.
  bool record_allocator = false;
  // The result must be the same without:
  bool fold_ranks = true;    // simulate ranks that do the same as one
  bool skip_repeats = true;  // iterations that repeat others go on record as Timeline::repeats
};

Timeline simulate(const program::Workload& workload, const Machine& machine,
                  const SimulateOptions& options = {});

}  // namespace sim::engine
