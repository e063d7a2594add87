// Memory of one host: who holds how much of which kind, and who dies when it is exceeded.
//
// Anonymous and pinned pages count for good; file-backed pages (mmapped checkpoints) are given up
// by the kernel before anything else. No swap is modelled: training nodes run without.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"

namespace sim::memory {

enum class HostMemoryKind : std::uint8_t { anonymous, pinned, file_backed };

struct HostUse {
  Bytes anonymous, pinned, file_backed;
  Bytes unreclaimable() const { return anonymous + pinned; }
};

class HostMemory {
 public:
  // What the kernel can hand out, or a memory cgroup where that is the tighter bound.
  explicit HostMemory(Bytes limit) : limit_(limit) {}

  // Processes are dense indices, local to the host.
  void allocate(int process, HostMemoryKind kind, Bytes size);
  void free(int process, HostMemoryKind kind, Bytes size);

  // The process that the kernel kills now, or nullopt while anonymous and pinned memory fit: the
  // one with the largest resident set, which is how oom_badness() ranks processes of equal
  // oom_score_adj; of equal ones the first. The caller frees what it holds and asks again.
  std::optional<int> victim() const;

  Bytes limit() const { return limit_; }
  HostUse use() const { return total_; }
  HostUse use(int process) const;
  // File-backed pages that are still cached: what the rest leaves of the limit.
  Bytes resident_file_backed() const;

 private:
  Bytes& amount(HostUse& use, HostMemoryKind kind);
  HostUse& process_use(int process);

  Bytes limit_;
  HostUse total_;
  std::vector<HostUse> processes_;
};

}  // namespace sim::memory
