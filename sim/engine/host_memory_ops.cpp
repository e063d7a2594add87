#include "sim/engine/host_memory_ops.h"

#include <fmt/format.h>

namespace sim::engine {

std::optional<HostOutOfMemory> change_host_memory(Rank& rank, std::uint32_t rank_class,
                                                  Hosts& hosts) {
  const auto* alloc = std::get_if<program::HostAlloc>(&rank.op().body);
  const auto id =
      alloc != nullptr ? alloc->buffer : std::get<program::HostFree>(rank.op().body).buffer;
  const program::HostBuffer& buffer = rank.program().host_buffers[id];
  if (rank.exchange_buffer(id, alloc != nullptr)) {
    hosts.free(rank_class, buffer.kind, buffer.bytes);
    rank.hold_on_host(buffer.kind, -buffer.bytes);
  }
  if (alloc == nullptr) return std::nullopt;
  const auto kill = hosts.allocate(rank_class, buffer.kind, buffer.bytes);
  if (!kill) {
    rank.hold_on_host(buffer.kind, buffer.bytes);
    return std::nullopt;
  }
  return HostOutOfMemory{
      kill->host,
      kill->victim,
      rank.phase_name(),
      rank.scope_name(buffer.scope.valid() ? buffer.scope : rank.op().scope),
      fmt::format("Signal 9 (SIGKILL) received by PID of local rank {}", kill->local_rank),
      buffer.bytes,
      kill->capacity,
      kill->used,
      rank.now()};
}

}  // namespace sim::engine
