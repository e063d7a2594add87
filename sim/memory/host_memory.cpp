#include "sim/memory/host_memory.h"

#include <algorithm>

#include "sim/base/check.h"

namespace sim::memory {

void HostMemory::allocate(int process, HostMemoryKind kind, Bytes size) {
  amount(process_use(process), kind) += size;
  amount(total_, kind) += size;
}

void HostMemory::free(int process, HostMemoryKind kind, Bytes size) {
  Bytes& held = amount(process_use(process), kind);
  CHECK(size <= held, "a process gives back more host memory than it holds");
  held -= size;
  amount(total_, kind) -= size;
}

std::optional<int> HostMemory::victim() const {
  if (total_.unreclaimable() <= limit_) return std::nullopt;
  const auto largest = std::max_element(
      processes_.begin(), processes_.end(),
      [](const HostUse& a, const HostUse& b) { return a.unreclaimable() < b.unreclaimable(); });
  return static_cast<int>(largest - processes_.begin());
}

HostUse HostMemory::use(int process) const {
  const auto index = static_cast<std::size_t>(process);
  return index < processes_.size() ? processes_[index] : HostUse{};
}

Bytes HostMemory::resident_file_backed() const {
  const Bytes room = std::max(Bytes{}, limit_ - total_.unreclaimable());
  return std::min(room, total_.file_backed);
}

Bytes& HostMemory::amount(HostUse& use, HostMemoryKind kind) {
  switch (kind) {
    case HostMemoryKind::anonymous:
      return use.anonymous;
    case HostMemoryKind::pinned:
      return use.pinned;
    case HostMemoryKind::file_backed:
      break;
  }
  return use.file_backed;
}

HostUse& HostMemory::process_use(int process) {
  CHECK(process >= 0, "a process without index");
  const auto index = static_cast<std::size_t>(process);
  if (processes_.size() <= index) processes_.resize(index + 1);
  return processes_[index];
}

}  // namespace sim::memory
