#include "sim/memory/device_memory.h"

#include <iterator>

namespace sim::memory {
namespace {

// Seen in every multi-line report: "free" moves in steps of 2 MiB.
constexpr Bytes kPage{2'097'152};

}  // namespace

bool DeviceMemory::take(Bytes size) {
  const Bytes pages = round_up(size, kPage);
  if (pages > free()) return false;
  taken_ += pages;
  return true;
}

void DeviceMemory::give_back(Bytes size) { taken_ -= round_up(size, kPage); }

bool DeviceMemory::take_external(Bytes size) {
  if (size > free()) return false;
  external_ += size;
  return true;
}

void DeviceMemory::give_back_external(Bytes size) { external_ -= size; }

std::optional<Address> ModelDriver::allocate_segment(Bytes size, Stream) {
  if (!device_->take(size)) return std::nullopt;
  return place(size);
}

void ModelDriver::free_segment(Address at, Bytes size, Stream) {
  device_->give_back(size);
  vacate(at, size);
}

Address ModelDriver::reserve_range(Bytes size, Stream) { return place(size); }

void ModelDriver::release_range(Address at, Bytes size) { vacate(at, size); }

bool ModelDriver::map(Address, Bytes size, Stream) { return device_->take(size); }

void ModelDriver::unmap(Address, Bytes size, Stream) { device_->give_back(size); }

Address ModelDriver::place(Bytes size) {
  const Bytes pages = round_up(size, kPage);
  for (auto it = vacant_.begin(); it != vacant_.end(); ++it) {
    if (it->second < pages) continue;
    const auto [at, room] = *it;
    vacant_.erase(it);
    if (room > pages) {
      vacant_.emplace(at + static_cast<Address>(pages.count), room - pages);
    }
    return at;
  }
  const Address at = next_;
  next_ += static_cast<Address>(pages.count);
  return at;
}

void ModelDriver::vacate(Address at, Bytes size) {
  Bytes room = round_up(size, kPage);
  auto after = vacant_.lower_bound(at);
  if (after != vacant_.end() && at + static_cast<Address>(room.count) == after->first) {
    room += after->second;
    after = vacant_.erase(after);
  }
  if (after != vacant_.begin()) {
    const auto before = std::prev(after);
    if (before->first + static_cast<Address>(before->second.count) == at) {
      before->second += room;
      return;
    }
  }
  vacant_.emplace_hint(after, at, room);
}

}  // namespace sim::memory
