// The phases of one rank's life and the highest memory figures inside each. Everything here is
// called for each allocation, so it compares numbers and nothing else.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/memory/caching_allocator.h"
#include "sim/program/program.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

class PhaseLog {
 public:
  // Ends the current phase; the next begins with the current figures as its peaks.
  void begin(program::PhaseId phase, Instant now);
  void end(Instant now);

  // A block of `size` was handed out; `allocated` counts it.
  void allocate(MemoryClass memory_class, Bytes size, Bytes allocated, std::uint32_t op) {
    const auto c = static_cast<std::size_t>(memory_class);
    by_class_[c] += size;
    if (by_class_[c] > open_.peak_by_class[c]) open_.peak_by_class[c] = by_class_[c];
    allocated_ = allocated;
    if (allocated > open_.peak_allocated) {
      open_.peak_allocated = allocated;
      open_.peak_op = op;
    }
  }
  void free(MemoryClass memory_class, Bytes size, Bytes allocated) {
    by_class_[static_cast<std::size_t>(memory_class)] -= size;
    allocated_ = allocated;
  }
  // What the process holds from the driver, and what is taken of the whole device.
  void hold(Bytes reserved, Bytes device_used);
  void hold_on_host(HostMemoryKind kind, Bytes change);
  void warn() { ++open_.warnings; }
  void retry() {
    ++open_.alloc_retries;
    ++retries_;
  }

  // Phases ended so far.
  std::size_t ended() const { return records_.size(); }
  program::PhaseId current() const { return phase_; }
  // The phase that is open, its begin counted from `now`.
  PhaseRecord open_since(Instant now) const;
  // What happened since `ended` phases had ended and `retries` retries had been counted happens
  // `times` times more, each `period` long.
  void repeat(std::size_t ended, std::int64_t retries, std::int64_t times, Duration period);
  std::int64_t retries() const { return retries_; }
  // With the names of `program`, in time order. Work before any BeginPhase counts as "init".
  std::vector<PhaseRecord> records(const program::Program& program) const;
  std::string name(const program::Program& program) const { return name_of(phase_, program); }
  static std::string name_of(program::PhaseId phase, const program::Program& program);

 private:
  program::PhaseId phase_;
  bool begun_ = false;
  PhaseRecord open_;                      // without its name
  std::vector<program::PhaseId> phases_;  // of records_
  std::vector<PhaseRecord> records_;
  std::array<Bytes, kMemoryClasses> by_class_{};
  Bytes allocated_, reserved_, device_used_, host_anonymous_, host_pinned_;
  std::int64_t retries_ = 0;  // in all phases
};

}  // namespace sim::engine
