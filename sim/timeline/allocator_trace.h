// What a caching allocator did, event by event, and what it held in the end: the content of
// PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot). Data only: the allocator and the
// engine fill it, the report writes it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace sim {

// The actions of PyTorch's trace (c10/cuda/CUDACachingAllocator.h, TraceEntry::Action).
enum class AllocatorAction : std::uint8_t {
  alloc,
  free_requested,
  free_completed,  // at once, or after the events of other streams
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom
};
constexpr std::string_view to_text(AllocatorAction action) {
  constexpr std::string_view kWords[] = {
      "alloc",        "free_requested", "free_completed", "segment_alloc",
      "segment_free", "segment_map",    "segment_unmap",  "oom"};
  return kWords[static_cast<std::size_t>(action)];
}

struct TraceEvent {
  AllocatorAction action = AllocatorAction::alloc;
  std::uint8_t stream = 0;
  std::uint64_t address = 0;
  Bytes size;  // as asked, of blocks; the rounded request, of an oom
  Bytes free;  // of an oom: what the device had left
  // Filled by the engine.
  RankId rank;
  Instant at{};
  std::uint32_t op = 0;      // of its program, in whose course it happened
  std::uint32_t tensor = 0;  // of an alloc: TensorId in its program
};

// One segment, or one mapped stretch of an expandable segment.
struct SegmentView {
  struct Block {
    std::uint64_t address = 0;
    Bytes size, requested;
    bool allocated = false;
    bool active = false;  // allocated, or freed and waiting for events
  };
  std::uint64_t address = 0;
  Bytes size;
  std::uint8_t stream = 0;
  bool small_pool = false;
  bool expandable = false;
  std::vector<Block> blocks;  // in address order, without gaps
};

}  // namespace sim
