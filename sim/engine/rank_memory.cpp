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

void replace(std::string& text, std::string_view placeholder, const std::string& by) {
  const std::size_t place = text.find(placeholder);
  if (place != std::string::npos) text.replace(place, placeholder.size(), by);
}

// In a message "{rank}" stands for the rank and "{}" for the exception's text; without a message
// there is the exception alone.
std::string warning_text(const program::Program& program, program::MessageId id, RankId rank,
                         const std::string& exception) {
  if (!id.valid()) return exception;
  std::string text = program.messages[id];
  replace(text, "{rank}", std::to_string(rank.value));
  replace(text, "{}", exception);
  return text;
}

}  // namespace

Stop Rank::exec(const program::Alloc& body, const program::Op& op) {
  if (pending_.undecided(streams_) && behind()) return Stop::yield;
  pending_.retire(host_now_, streams_, memory_.allocator);
  if (self_.recording.allocator != nullptr) name_events();
  const program::TensorInfo& info = program().tensors[body.tensor];
  if (info.bytes.count <= 0) {  // an empty tensor never asks the allocator
    release(body.tensor);
    return Stop::none;
  }
  if (info.bytes > memory::CachingAllocator::kLargestRequest) {
    return allocation_failed(body, op, info.bytes);
  }
  const std::int64_t segments = memory_.allocator.stats().segments.current;
  const memory::AllocResult result =
      memory_.allocator.allocate(info.bytes, static_cast<memory::Stream>(op.stream));
  if (self_.recording.allocator != nullptr) name_events(body.tensor);
  Stop stop = Stop::none;
  if (!result.ok || result.new_segment || result.retried || result.synchronized) [[unlikely]] {
    if (result.synchronized) pending_.clear();
    if (result.retried) phases_.retry();
    // One call that succeeded or failed, and before a retry one more that failed.
    const std::int64_t mallocs = 1 + (result.retried ? 1 : 0);
    const std::int64_t made = result.new_segment ? 1 : 0;
    const std::int64_t frees = segments + made - memory_.allocator.stats().segments.current;
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
  phases_.allocate(info.memory_class, memory_.allocator.size(result.block),
                   memory_.allocator.stats().allocated.current, next_op_);
  if (self_.recording.memory != nullptr) note_memory();
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
  memory_.allocator.record_stream(tensor.block, stream);
  if (stream != memory_.allocator.stream(tensor.block)) {
    tensor.used_on = static_cast<std::uint16_t>(tensor.used_on | 1u << stream);
  }
  return Stop::none;
}

void Rank::release(program::TensorId id) {
  Tensor& tensor = tensors_[id];
  if (!tensor.block.valid()) return;
  const Bytes size = memory_.allocator.size(tensor.block);
  if (!memory_.allocator.free(tensor.block)) pending_.add(tensor.block, tensor.used_on, streams_);
  if (self_.recording.allocator != nullptr) name_events();
  tensor = {};
  phases_.free(program().tensors[id].memory_class, size,
               memory_.allocator.stats().allocated.current);
  if (self_.recording.memory != nullptr) note_memory();
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
    spend(cost);
  }
  phases_.hold(memory_.allocator.stats().reserved.current, memory_.device.used());
  if (self_.recording.slices != nullptr && begin < host_now_) {
    host_slice(SliceKind::allocator, begin, self_.recording.labels->allocator, op().scope);
  }
  return stop;
}

memory::OomFigures Rank::oom_figures(Bytes tried) const {
  const memory::MemoryStats& stats = memory_.allocator.stats();
  memory::OomFigures figures;
  figures.tried = tried;
  figures.gpu = self_.local_rank;
  figures.total = memory_.device.total();
  figures.free = memory_.device.free();
  figures.allowed = memory_.allocator.allowed();
  figures.allocated = stats.allocated.current;
  figures.reserved = stats.reserved.current;
  figures.processes = {{0, memory_.device.used() - machine_->gpu.used_by_others, true}};
  return figures;
}

Stop Rank::allocation_failed(const program::Alloc& body, const program::Op& op, Bytes tried) {
  const program::TensorInfo& info = program().tensors[body.tensor];
  const ScopeId scope = info.scope.valid() ? info.scope : op.scope;
  memory::OomFigures figures = oom_figures(tried);
  if (info.on_failure == program::OnFailure::abort) {
    failure_ = CudaOutOfMemory{ranks().front(),
                               phase_name(),
                               scope_name(scope),
                               memory::oom_message(machine_->allocator, figures),
                               info.label.valid() ? program().labels[info.label] : std::string{},
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
  phases_.warn();
  caught_.push_back({body.tensor, scope, phases_.current(), std::move(figures)});
  return Stop::none;
}

// What was caught, in words; those of one text in a row are one.
std::vector<WarningRecord> Rank::warnings() const {
  std::vector<WarningRecord> records;
  for (const CaughtFailure& caught : caught_) {
    memory::OomFigures figures = caught.figures;
    figures.gpu = self_.local_rank;
    const std::string error = memory::oom_message(machine_->allocator, figures);
    WarningRecord record{
        ranks().front(),
        PhaseLog::name_of(caught.phase, program()),
        scope_name(caught.scope),
        warning_text(program(), program().tensors[caught.tensor].warning, ranks().front(), error),
        figures.tried,
        figures.allocated,
        figures.reserved,
        figures.free,
        1};
    const bool repeats = !records.empty() && records.back().text == record.text &&
                         records.back().scope == record.scope &&
                         records.back().phase == record.phase;
    if (repeats) {
      ++records.back().count;
    } else {
      records.push_back(std::move(record));
    }
  }
  return records;
}

Stop Rank::exec(const program::EmptyCache&, const program::Op&) {
  const std::int64_t segments = memory_.allocator.stats().segments.current;
  memory_.allocator.empty_cache();
  if (self_.recording.allocator != nullptr) name_events();
  pending_.clear();
  const std::int64_t freed = segments - memory_.allocator.stats().segments.current;
  const Stop stop = pay_driver(freed > 0, 0, freed);
  if (self_.recording.memory != nullptr) note_memory();
  return stop;
}

Stop Rank::exec(const program::ExternalAlloc& body, const program::Op& op) {
  const program::ExternalMemory& memory = program().externals[body.memory];
  if (externals_[body.memory] != 0) return Stop::none;
  if (!memory_.device.take_external(memory.bytes)) {
    const std::string what = memory.label.valid() ? program().labels[memory.label] : std::string{};
    const memory::MemoryStats& stats = memory_.allocator.stats();
    failure_ = CudaOutOfMemory{ranks().front(),
                               phase_name(),
                               scope_name(op.scope),
                               external_message(what),
                               what,
                               memory.bytes,
                               memory.bytes,
                               stats.allocated.current,
                               stats.reserved.current,
                               memory_.device.free(),
                               memory_.device.total(),
                               host_now_};
    return Stop::failed;
  }
  externals_[body.memory] = 1;
  phases_.hold(memory_.allocator.stats().reserved.current, memory_.device.used());
  if (self_.recording.memory != nullptr) note_memory();
  return Stop::none;
}

Stop Rank::exec(const program::ExternalFree& body, const program::Op&) {
  if (externals_[body.memory] == 0) return Stop::none;
  externals_[body.memory] = 0;
  memory_.device.give_back_external(program().externals[body.memory].bytes);
  phases_.hold(memory_.allocator.stats().reserved.current, memory_.device.used());
  if (self_.recording.memory != nullptr) note_memory();
  return Stop::none;
}

// The events that the allocator has just appended are this rank's; the block handed out is
// `tensor`.
void Rank::name_events(program::TensorId tensor) {
  std::vector<TraceEvent>& events = *self_.recording.allocator;
  for (auto event = events.rbegin(); event != events.rend() && !event->rank.valid(); ++event) {
    event->rank = ranks().front();
    event->at = host_now_;
    event->op = next_op_;
    event->tensor = tensor.value;
    if (event->action == AllocatorAction::oom) event->free = memory_.device.free();
  }
}

void Rank::note_memory() {
  const memory::MemoryStats& stats = memory_.allocator.stats();
  self_.recording.memory->push_back({ranks().front(), host_now_, next_op_, stats.allocated.current,
                                     stats.reserved.current, memory_.device.used()});
}

}  // namespace sim::engine
