// A recorded run of PyTorch's caching allocator through the emulator.
//
// With the recording's own settings it is a proof: every operation (a call of a corpus, an event of
// an events file) must choose the same address, ask the driver for the same segments, and leave the
// same counters. What the driver and the GPU decide is taken from the recording: the addresses of
// segments, whether a segment was granted (unless the memory fraction already refuses it), and when
// a block used on other streams became free.
//
// With other settings or another capacity it is a what-if: the same requests and frees through the
// emulator's own driver. Nothing is compared; the result says how the run would have ended. A
// request that failed in the recording is tried, and given back at once if it now fits, since the
// recording does not say how long it would have lived; a request that fails now has its free
// skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/units.h"
#include "sim/timeline/read_allocator_log.h"

namespace sim::study {

struct ReplayOptions {
  // Options on top of the recorded ones, in the syntax of PYTORCH_CUDA_ALLOC_CONF.
  std::optional<Named> set;
  // What the driver can give this process; replaces the recorded device and memory fraction.
  std::optional<Bytes> capacity;
  bool is_what_if() const { return set || capacity; }
};

struct ReplayDifference {
  std::int64_t operation = 0;  // counts from 0
  std::string what;            // "reserved", "address", "segment", ...
  std::string expected, got;   // of the recording, of the emulator
};

struct ReplayOom {
  std::int64_t operation = 0;
  std::string message;  // with the device's own figures where the recording has them
};

struct ReplayResult {
  std::string name;
  std::string settings;  // in force
  std::string release;   // family of PyTorch releases that was emulated
  bool what_if = false;
  std::int64_t operations = 0;
  std::int64_t differences = 0;
  std::optional<ReplayDifference> first_difference;
  Bytes peak_allocated, peak_reserved, end_allocated, end_reserved;
  std::optional<Bytes> limit;  // most that could be reserved, where known
  std::int64_t ooms = 0, alloc_retries = 0;
  std::vector<ReplayOom> first_ooms;  // at most 10
  std::vector<std::string> notes;     // what was assumed
};

// nullopt, with errors filed, where the settings or the release of the recording mean nothing.
std::optional<ReplayResult> replay(const AllocatorLog& log, const ReplayOptions& options,
                                   Diagnostics& diagnostics);

// For people: a verdict sentence, then the figures.
std::string to_text(const ReplayResult& result);

}  // namespace sim::study
