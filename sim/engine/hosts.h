// The hosts of the job: memory of all processes on each, and whom the kernel kills.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/terms.h"
#include "sim/engine/machine.h"
#include "sim/engine/rank_classes.h"
#include "sim/memory/host_memory.h"
#include "sim/timeline/timeline.h"

namespace sim::engine {

class Hosts {
 public:
  struct Kill {
    HostId host;
    RankId victim;
    int local_rank = 0;
    Bytes used, capacity;
  };

  Hosts(const Machine& machine, const RankClasses& classes);

  int local_rank(RankId rank) const { return local_rank_[rank]; }

  // `rank_class` can be classes.everyone(). Each process of the rank class takes or gives back
  // `size`, in rank order; set if that was too much for a host.
  std::optional<Kill> allocate(std::uint32_t rank_class, HostMemoryKind kind, Bytes size);
  void free(std::uint32_t rank_class, HostMemoryKind kind, Bytes size);

  // A host's phases are those of its first process.
  void begin_phase(std::uint32_t rank_class, const std::string& name);

  // One record per host of the cluster that runs a process, by host.
  std::vector<HostRecord> close() const;

 private:
  // Hosts whose processes are of the same classes in the same order share one model.
  struct Model {
    std::vector<HostId> hosts;
    std::vector<RankId> processes;  // of the first of them, by local rank
    memory::HostMemory memory;
    HostRecord record;
  };
  struct Process {
    std::uint32_t model = 0;
    int local = 0;
  };
  void note(Model& model);

  std::vector<Model> models_;
  std::vector<std::vector<Process>> processes_of_;  // by rank class and of everyone, in rank order
  IdVector<RankId, int> local_rank_;
};

}  // namespace sim::engine
