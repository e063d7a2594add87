// The CUDA driver as a recording tells it: a cursor over the recorded events that answers the
// emulator's driver calls and notes where the two disagree.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/memory/device_memory.h"
#include "sim/timeline/read_allocator_log.h"

namespace sim::study {

// Recorded stream handles as dense indices, in the order in which PyTorch sorts them.
class StreamIndex {
 public:
  explicit StreamIndex(const AllocatorLog& log);
  memory::Stream operator[](std::uint64_t handle) const;
  std::uint64_t handle(memory::Stream stream) const { return handles_[stream]; }
  // A stream that no recorded block belongs to: marks blocks whose free has to wait.
  memory::Stream unused() const { return static_cast<memory::Stream>(handles_.size()); }

 private:
  std::vector<std::uint64_t> handles_;  // ascending
};

struct Mismatch {
  std::string what, expected, got;
};

class RecordedDriver final : public memory::Driver {
 public:
  // Without events every call is granted, at made-up addresses.
  RecordedDriver(const std::vector<AllocatorEvent>& events, const StreamIndex& streams)
      : events_(&events), streams_(&streams) {}

  std::optional<memory::Address> allocate_segment(Bytes size, memory::Stream stream) override;
  void free_segment(memory::Address at, Bytes size, memory::Stream stream) override;
  memory::Address reserve_range(Bytes size, memory::Stream stream) override;
  void release_range(memory::Address, Bytes) override {}
  bool map(memory::Address at, Bytes size, memory::Stream stream) override;
  void unmap(memory::Address at, Bytes size, memory::Stream stream) override;

  // The event that comes next, or null at the end.
  const AllocatorEvent* peek() const {
    return next_ < events_->size() ? &(*events_)[next_] : nullptr;
  }
  void advance() { ++next_; }
  std::size_t position() const { return next_; }
  bool has_events() const { return !events_->empty(); }

  // Addresses of freed blocks that wait for other streams. Their completions may stand between
  // driver events, where the allocator synchronised.
  std::unordered_set<memory::Address>& waiting() { return waiting_; }
  void skip_completions();

  void disagree(std::string what, std::string expected, std::string got);
  std::size_t mismatches() const { return mismatches_; }
  const std::optional<Mismatch>& first_mismatch() const { return first_mismatch_; }
  void forget_mismatches();

  // "alloc of 512 B at 0x7f00"
  std::string describe_next() const;

 private:
  bool take(AllocatorAction action, memory::Address at, Bytes size, memory::Stream stream);
  bool hold(memory::Address at, Bytes size);
  memory::Address invent(Bytes size);

  const std::vector<AllocatorEvent>* events_;
  const StreamIndex* streams_;
  std::size_t next_ = 0;
  std::unordered_set<memory::Address> waiting_;
  std::map<memory::Address, Bytes> held_;  // memory that the emulator holds, by address
  memory::Address invented_ = memory::Address{1} << 60;
  std::size_t mismatches_ = 0;
  std::optional<Mismatch> first_mismatch_;
};

std::string describe(const AllocatorEvent& event);

}  // namespace sim::study
