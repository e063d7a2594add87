// Recorded runs of PyTorch's CUDA caching allocator, in two forms:
//
//   <name>.jsonl[.gz]       a corpus: one line of settings, one line per call with the counters
//   after
//                           it, one last line with every event
//   <name>.events.csv[.gz]  the events of a training run (action,addr,size,stream,time_us);
//   settings
//                           and memory cap stand in <name>.json beside it, where there is one
//
// Only a recording that starts before the first allocation can be read: a free of an address that
// is not in use is an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/units.h"
#include "sim/timeline/allocator_trace.h"

namespace sim {

// As torch.cuda.memory._snapshot() lists them. `size` is the requested size for alloc and frees,
// the rounded one for oom.
struct AllocatorEvent {
  AllocatorAction action = AllocatorAction::alloc;
  std::uint64_t address = 0;
  Bytes size;
  std::uint64_t stream = 0;  // cudaStream_t
};

// torch.cuda.memory_stats(), aggregate of both pools.
struct AllocatorCounters {
  Bytes allocated, active, reserved, requested, inactive_split;
  std::int64_t segments = 0, retries = 0, ooms = 0;
};

// One call of a corpus.
struct AllocatorCall {
  enum class Kind : std::uint8_t { alloc, free, empty_cache };
  Kind kind = Kind::alloc;
  std::uint32_t allocation = 0;  // dense number of the tensor that is allocated or freed
  Bytes size;                    // alloc
  bool on_side_stream = false;   // alloc
  bool recorded = false;         // free: used on the side stream, then both streams synchronised
  bool failed = false;           // alloc
  std::string message;           // alloc that failed: first line of the exception
  AllocatorCounters after;
};

struct AllocatorLog {
  std::string name;
  bool settings_known = false;  // else conf, total and cap are defaults
  Named conf;                   // PYTORCH_CUDA_ALLOC_CONF
  Named torch;                  // release; empty: not recorded
  std::optional<Bytes> total;   // cudaMemGetInfo
  std::optional<Bytes> cap;     // the memory fraction as bytes
  std::uint64_t side_stream = 0;
  bool is_corpus = false;
  std::vector<AllocatorCall> calls;  // of a corpus
  std::vector<AllocatorEvent> events;
  std::uint32_t allocations = 0;  // tensors that `calls` names
};

// Reads either form, compressed or not. Everything that is wrong is filed (the first 20 places,
// then how many more there are); then nullopt.
std::optional<AllocatorLog> read_allocator_log(const std::string& path, Diagnostics& diagnostics);

// The same for text in memory. `settings` is the JSON file beside an events file, or null.
std::optional<AllocatorLog> read_allocator_corpus(std::shared_ptr<const SourceFile> file,
                                                  Diagnostics& diagnostics);
std::optional<AllocatorLog> read_allocator_events(std::shared_ptr<const SourceFile> file,
                                                  std::shared_ptr<const SourceFile> settings,
                                                  Diagnostics& diagnostics);

}  // namespace sim
