// The device memory of a rank: its ops on the caching allocator and beside it.
#include <algorithm>

#include "sim/engine/rank.h"
#include "sim/memory/oom_message.h"

namespace sim::engine {

namespace {

// PyTorch's and NCCL's words where memory outside the caching allocator cannot be had.
std::string external_message(const std::string& what) {
  if (what.find("NCCL") == std::string::npos) return "CUDA error: out of memory";
  return "NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n"
         "ncclUnhandledCudaError: Call to CUDA function failed.\n"
         "Last error:\n"
         "Cuda failure 'out of memory'";
}

// The message's first "{}" stands for the exception's text; none: the exception alone.
std::string warning_text(const program::Program& program, program::MessageId id,
                         const std::string& exception) {
  if (!id.valid()) return exception;
  std::string text = program.messages[id];
  const std::size_t place = text.find("{}");
  if (place != std::string::npos) text.replace(place, 2, exception);
  return text;
}

}  // namespace

Stop Rank::exec(const program::Alloc& body, const program::Op& op) {
  if (pending_.undecided(streams_) && behind()) return Stop::yield;
  pending_.retire(host_now_, streams_, allocator_);
  const program::TensorInfo& info = program_->tensors[body.tensor];
  if (info.bytes.count <= 0) {  // an empty tensor never asks the allocator
    release(body.tensor);
    return Stop::none;
  }
  if (info.bytes > memory::CachingAllocator::kLargestRequest) {
    return allocation_failed(body, op, info.bytes);
  }
  const std::int64_t segments = allocator_.stats().segments.current;
  const memory::AllocResult result =
      allocator_.allocate(info.bytes, static_cast<memory::Stream>(op.stream));
  Stop stop = Stop::none;
  if (!result.ok || result.new_segment || result.retried || result.synchronized) [[unlikely]] {
    if (result.synchronized) pending_.clear();
    if (result.retried) phases_.retry();
    // One call that succeeded or failed, and before a retry one more that failed.
    const std::int64_t mallocs = 1 + (result.retried ? 1 : 0);
    const std::int64_t made = result.new_segment ? 1 : 0;
    const std::int64_t frees = segments + made - allocator_.stats().segments.current;
    stop = pay_driver(result.retried || result.synchronized, mallocs,
                      std::max<std::int64_t>(frees, 0));
  }
  if (!result.ok) {
    const Stop failed = allocation_failed(body, op, result.segment_size);
    return stop == Stop::none ? failed : stop;
  }
  // A name that is bound again gives its old tensor up after the new one exists.
  if (tensors_[body.tensor].block.valid()) release(body.tensor);
  tensors_[body.tensor] = {result.block, 0, false};
  phases_.allocate(info.memory_class, allocator_.size(result.block),
                   allocator_.stats().allocated.current, next_op_);
  if (recording_.memory != nullptr) note_memory();
  return stop;
}

Stop Rank::exec(const program::Free& body, const program::Op&) {
  release(body.tensor);
  return Stop::none;
}

Stop Rank::exec(const program::RecordStream& body, const program::Op&) {
  Tensor& tensor = tensors_[body.tensor];
  if (!tensor.block.valid()) return Stop::none;
  const auto stream = static_cast<memory::Stream>(body.used_on);
  allocator_.record_stream(tensor.block, stream);
  if (stream != allocator_.stream(tensor.block)) {
    tensor.used_on = static_cast<std::uint16_t>(tensor.used_on | 1u << stream);
  }
  return Stop::none;
}

void Rank::release(program::TensorId id) {
  Tensor& tensor = tensors_[id];
  if (!tensor.block.valid()) return;
  const Bytes size = allocator_.size(tensor.block);
  if (!allocator_.free(tensor.block)) pending_.add(tensor.block, tensor.used_on, streams_);
  tensor = {};
  phases_.free(program_->tensors[id].memory_class, size, allocator_.stats().allocated.current);
  if (recording_.memory != nullptr) note_memory();
}

// Giving cached memory back waits for the events of all pending blocks, and cudaFree for the whole
// device; only then the driver's own time begins.
Stop Rank::pay_driver(bool waits, std::int64_t mallocs, std::int64_t frees) {
  const Stop stop = waits ? wait_for_device() : Stop::none;
  const Duration cost = kCudaMalloc * mallocs + kCudaFree * frees;
  const Instant begin = host_now_;
  if (stop == Stop::waits) {
    owed_ = cost;
  } else {
    host_now_ += cost;
  }
  phases_.hold(allocator_.stats().reserved.current, device_.used());
  if (recording_.slices != nullptr && begin < host_now_) {
    host_slice(SliceKind::allocator, begin, recording_.labels->allocator, op().scope);
  }
  return stop;
}

Stop Rank::allocation_failed(const program::Alloc& body, const program::Op& op, Bytes tried) {
  const program::TensorInfo& info = program_->tensors[body.tensor];
  const memory::MemoryStats& stats = allocator_.stats();
  const Bytes own = device_.used() - machine_->gpu.used_by_others;
  memory::OomFigures figures;
  figures.tried = tried;
  figures.gpu = local_rank_;
  figures.total = device_.total();
  figures.free = device_.free();
  figures.allowed = allocator_.allowed();
  figures.allocated = stats.allocated.current;
  figures.reserved = stats.reserved.current;
  figures.processes = {{0, own, true}};
  const std::string message = memory::oom_message(machine_->allocator, figures);
  const std::string scope = scope_name(info.scope.valid() ? info.scope : op.scope);

  if (info.on_failure == program::OnFailure::abort) {
    failure_ = CudaOutOfMemory{ranks_.front(),
                               phase_name(),
                               scope,
                               message,
                               info.label.valid() ? program_->labels[info.label] : std::string{},
                               info.bytes,
                               tried,
                               figures.allocated,
                               figures.reserved,
                               figures.free,
                               figures.total,
                               host_now_};
    return Stop::failed;
  }
  release(body.tensor);
  tensors_[body.tensor].dangling = true;
  failed_allocs_.push_back(body.tensor.value);
  phases_.warn();
  const std::string text = warning_text(*program_, info.warning, message);
  WarningRecord warning{ranks_.front(),    phase_name(),     scope,        text, tried,
                        figures.allocated, figures.reserved, figures.free, 1};
  const bool repeats = !warnings_.empty() && warnings_.back().text == text &&
                       warnings_.back().scope == scope && warnings_.back().phase == warning.phase;
  if (repeats) {
    ++warnings_.back().count;
  } else {
    warnings_.push_back(std::move(warning));
  }
  return Stop::none;
}

Stop Rank::exec(const program::EmptyCache&, const program::Op&) {
  const std::int64_t segments = allocator_.stats().segments.current;
  allocator_.empty_cache();
  pending_.clear();
  const std::int64_t freed = segments - allocator_.stats().segments.current;
  const Stop stop = pay_driver(freed > 0, 0, freed);
  if (recording_.memory != nullptr) note_memory();
  return stop;
}

Stop Rank::exec(const program::ExternalAlloc& body, const program::Op& op) {
  const program::ExternalMemory& memory = program_->externals[body.memory];
  if (externals_[body.memory] != 0) return Stop::none;
  if (!device_.take_external(memory.bytes)) {
    const std::string what = memory.label.valid() ? program_->labels[memory.label] : std::string{};
    const memory::MemoryStats& stats = allocator_.stats();
    failure_ = CudaOutOfMemory{ranks_.front(),
                               phase_name(),
                               scope_name(op.scope),
                               external_message(what),
                               what,
                               memory.bytes,
                               memory.bytes,
                               stats.allocated.current,
                               stats.reserved.current,
                               device_.free(),
                               device_.total(),
                               host_now_};
    return Stop::failed;
  }
  externals_[body.memory] = 1;
  phases_.hold(allocator_.stats().reserved.current, device_.used());
  if (recording_.memory != nullptr) note_memory();
  return Stop::none;
}

Stop Rank::exec(const program::ExternalFree& body, const program::Op&) {
  if (externals_[body.memory] == 0) return Stop::none;
  externals_[body.memory] = 0;
  device_.give_back_external(program_->externals[body.memory].bytes);
  phases_.hold(allocator_.stats().reserved.current, device_.used());
  if (recording_.memory != nullptr) note_memory();
  return Stop::none;
}

void Rank::note_memory() {
  const memory::MemoryStats& stats = allocator_.stats();
  recording_.memory->push_back({ranks_.front(), host_now_, next_op_, stats.allocated.current,
                                stats.reserved.current, device_.used()});
}

}  // namespace sim::engine
