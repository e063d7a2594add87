// A Program: what one rank class issues from start to end; a Workload: the programs of all ranks.
// Both are plain values that print as text (program_text.h).
#pragma once

#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/terms.h"
#include "sim/base/units.h"
#include "sim/compute/kernel.h"
#include "sim/program/op.h"

namespace sim::program {

// What the script does when an allocation fails: the exception ends the rank, or it is caught, a
// warning is printed and the entry stays dangling (FSDP's state-dict clone).
enum class OnFailure : std::uint8_t { abort, warn };

struct TensorInfo {
  Bytes bytes;  // as asked, before any rounding
  MemoryClass memory_class = MemoryClass::temporaries;
  OnFailure on_failure = OnFailure::abort;
  ScopeId scope;      // module or parameter it belongs to
  LabelId label;      // what it is: "unsharded parameters", "silu output"
  LabelId saved_by;   // operator whose backward keeps it; none = not kept by autograd
  MessageId warning;  // on_failure == warn: text before the OOM message; "{}" stands for it
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_gather;
  GroupId group;
  Bytes bytes;  // as network::CollectiveRequest counts
  ScopeId scope;
  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

struct HostBuffer {
  Bytes bytes;
  HostMemoryKind kind = HostMemoryKind::anonymous;
  ScopeId scope;
  LabelId label;
  friend bool operator==(const HostBuffer&, const HostBuffer&) = default;
};

struct ExternalMemory {
  Bytes bytes;
  LabelId label;  // "CUDA context", "NCCL communicator"
  friend bool operator==(const ExternalMemory&, const ExternalMemory&) = default;
};

struct Program {
  IdVector<ScopeId, std::string> scopes;
  IdVector<LabelId, std::string> labels;
  IdVector<MessageId, std::string> messages;
  IdVector<PhaseId, std::string> phases;
  IdVector<TensorId, TensorInfo> tensors;
  IdVector<KernelId, compute::Kernel> kernels;
  IdVector<CollectiveId, CollectiveCall> collectives;
  IdVector<HostBufferId, HostBuffer> host_buffers;
  IdVector<ExternalId, ExternalMemory> externals;
  std::uint32_t events = 0;
  std::vector<Op> ops;
  std::string crash_message =
      "CUDA error: invalid argument";  // raised by a Copy from a dangling source
};

struct Group {
  std::string name;           // "world", "dp", ...
  std::vector<RankId> ranks;  // in order
};

struct Workload {
  std::vector<Program> programs;
  IdVector<RankId, std::uint32_t> program_of;  // index into programs
  IdVector<GroupId, Group> groups;
  Duration watchdog{};  // process-group timeout after which a hang is noticed
};

}  // namespace sim::program
