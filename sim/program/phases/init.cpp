#include <fmt/format.h>

#include "sim/base/units_text.h"
#include "sim/program/phases/phases.h"

namespace sim::program {

void Session::use_communicator() {
  if (communicator_made || world_size < 2 || outside) return;
  communicator_made = true;
  builder.external(communicator_memory(scenario.cluster.gpu.compute_capability, world_size),
                   "NCCL communicator");
}

void initialise(Session& session, Assumptions& assumptions) {
  Builder& b = session.builder;
  b.phase("init");
  if (session.outside) {
    b.external(*session.outside, "context, NCCL and other memory outside the allocator");
    return;
  }
  const GpuSpec& gpu = session.scenario.cluster.gpu;
  b.external(gpu.cuda_context, "CUDA context");
  assumptions.add(
      "device.cuda_context", to_text(gpu.cuda_context),
      "context and lazily loaded kernels of a process, from hardware/gpus/" + gpu.name + ".yaml");
  if (session.world_size > 1) {
    assumptions.add(
        "device.nccl_communicator",
        to_text(communicator_memory(gpu.compute_capability, session.world_size)),
        "measured for one communicator (A100: NVIDIA/nccl issue 964; H200: own recording)");
  }
}

}  // namespace sim::program
