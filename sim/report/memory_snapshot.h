// The allocator's history as torch.cuda.memory._dump_snapshot writes it: opens in PyTorch's
// memory_viz page and with torch/cuda/_memory_viz.py. Device i of the file is rank i; of ranks that
// did the same only the first has entries. Each allocation carries two frames: what the tensor is
// (name: module path and what it is; filename: memory class), and the phase.
//
// Form: torch/csrc/cuda/memory_snapshot.cpp and torch/utils/viz/MemoryViz.js of 2.x. The page
// replays the trace backwards from the segments, so no event may be missing: the timeline must come
// from SimulateOptions::record_allocator.
#pragma once

#include <string>

#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::report {

// Bytes of a pickle, protocol 2.
std::string memory_snapshot(const program::Workload& workload, const Timeline& timeline);

}  // namespace sim::report
