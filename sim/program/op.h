// The instruction set: what the Python thread of one rank issues, in host order. The caching
// allocator acts in host order, kernels in stream order.
#pragma once

#include <cstdint>
#include <variant>

#include "sim/base/ids.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"

namespace sim::program {

struct TensorTag;
struct KernelTag;
struct CollectiveTag;
struct EventTag;
struct HostBufferTag;
struct ExternalTag;
struct PhaseTag;
struct LabelTag;
struct MessageTag;
using TensorId = Id<TensorTag>;          // one device allocation
using KernelId = Id<KernelTag>;          // a distinct kernel
using CollectiveId = Id<CollectiveTag>;  // a distinct collective call
using EventId = Id<EventTag>;            // a CUDA event
using HostBufferId = Id<HostBufferTag>;
using ExternalId = Id<ExternalTag>;
using PhaseId = Id<PhaseTag>;
using LabelId = Id<LabelTag>;
using MessageId = Id<MessageTag>;

struct Alloc {
  TensorId tensor;
};  // on the op's stream; failure as TensorInfo says
struct Free {
  TensorId tensor;
};  // Python drops the last reference
struct RecordStream {
  TensorId tensor;
  StreamRole used_on;
};  // Tensor.record_stream
struct Launch {
  KernelId kernel;
};
struct Collective {
  CollectiveId call;
};  // enqueued on the op's stream; all members must come
enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device };
struct Copy {               // `blocking`: the host waits (tensor.cpu(), .item())
  std::uint32_t bytes_kib;  // rounded up to KiB: time only
  CopyDirection direction;
  bool blocking;
  bool pinned;      // of the host side
  TensorId source;  // a dangling source (its warn-and-go-on alloc failed) raises
};
struct HostWork {
  Duration duration;
};
struct HostAlloc {
  HostBufferId buffer;
};
struct HostFree {
  HostBufferId buffer;
};
struct EmptyCache {};  // torch.cuda.empty_cache()
struct ExternalAlloc {
  ExternalId memory;
};  // outside the caching allocator: context, NCCL
struct ExternalFree {
  ExternalId memory;
};
struct RecordEvent {
  EventId event;
};  // on the op's stream
struct WaitEvent {
  EventId event;
};  // the op's stream waits
struct Synchronize {
  EventId event;
};  // the host waits for the event; none: for the whole device
struct BeginPhase {
  PhaseId phase;
};
struct Loop {
  std::uint32_t ops;
  std::uint32_t times;
};  // the next `ops` ops run `times` times

using Body = std::variant<Alloc, Free, RecordStream, Launch, Collective, Copy, HostWork, HostAlloc,
                          HostFree, EmptyCache, ExternalAlloc, ExternalFree, RecordEvent, WaitEvent,
                          Synchronize, BeginPhase, Loop>;

struct Op {
  Body body;
  ScopeId scope;  // into Program::scopes
  StreamRole stream = StreamRole::compute;
};
static_assert(sizeof(Op) <= 32, "an Op stays compact: the inner loop reads millions");

}  // namespace sim::program
