// What one GPU can still give, and the CUDA driver's side of the caching allocator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sim/base/units.h"

namespace sim::memory {

// Bytes of one device as cudaMemGetInfo counts them: everything that any process took. Several
// processes may share one. Memory outside the caching allocators (contexts, NCCL, other programs)
// is `external`.
class DeviceMemory {
 public:
  explicit DeviceMemory(Bytes total, Bytes external = {}) : total_(total), external_(external) {}

  // The driver hands out whole 2 MiB pages; false where they do not fit.
  bool take(Bytes size);
  void give_back(Bytes size);

  // Memory outside the allocators, counted to the byte; false where it does not fit.
  bool take_external(Bytes size);
  void give_back_external(Bytes size);

  Bytes total() const { return total_; }
  Bytes free() const { return total_ - external_ - taken_; }
  Bytes used() const { return external_ + taken_; }
  Bytes external() const { return external_; }

 private:
  Bytes total_, external_, taken_;
};

using Address = std::uint64_t;
using Stream = std::uint8_t;  // dense index of a rank's stream; 0 is the default stream
inline constexpr int kMaxStreams = 64;

// The driver calls that a caching allocator makes. ModelDriver answers them from a DeviceMemory; a
// replay answers them from a recording.
class Driver {
 public:
  virtual ~Driver() = default;
  // cudaMalloc and cudaFree. nullopt: out of memory.
  virtual std::optional<Address> allocate_segment(Bytes size, Stream stream) = 0;
  virtual void free_segment(Address at, Bytes size, Stream stream) = 0;
  // Address space of an expandable segment (cuMemAddressReserve, cuMemAddressFree).
  virtual Address reserve_range(Bytes size, Stream stream) = 0;
  virtual void release_range(Address at, Bytes size) = 0;
  // Physical pages behind part of a range (cuMemCreate and cuMemMap, cuMemUnmap and cuMemRelease).
  // false: out of memory, and nothing was mapped.
  virtual bool map(Address at, Bytes size, Stream stream) = 0;
  virtual void unmap(Address at, Bytes size, Stream stream) = 0;
};

// Takes the bytes from a DeviceMemory and makes up the addresses: 2 MiB-aligned and ascending, a
// freed range is used again, lowest fitting one first. The real driver's order is not documented;
// it matters only where two free blocks of equal size tie.
class ModelDriver final : public Driver {
 public:
  explicit ModelDriver(DeviceMemory& device) : device_(&device) {}
  // A copy that takes from another device.
  ModelDriver(const ModelDriver& other, DeviceMemory& device) : ModelDriver(other) {
    device_ = &device;
  }
  // The end of the address space used so far.
  Address high_water() const { return next_; }

  std::optional<Address> allocate_segment(Bytes size, Stream stream) override;
  void free_segment(Address at, Bytes size, Stream stream) override;
  Address reserve_range(Bytes size, Stream stream) override;
  void release_range(Address at, Bytes size) override;
  bool map(Address at, Bytes size, Stream stream) override;
  void unmap(Address at, Bytes size, Stream stream) override;

 private:
  Address place(Bytes size);
  void vacate(Address at, Bytes size);

  DeviceMemory* device_;
  std::map<Address, Bytes> vacant_;  // ranges below next_ that were given back
  Address next_ = 0x7f00'0000'0000;
};

}  // namespace sim::memory
