#include "sim/study/replay.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/memory/allocator_profile.h"
#include "sim/memory/caching_allocator.h"
#include "sim/memory/oom_message.h"
#include "sim/study/replay_proof.h"

namespace sim::study {
namespace {

using memory::BlockId;
using memory::CachingAllocator;

// Stands for a device whose size was not recorded: nothing is refused for want of memory.
constexpr Bytes kUnknownTotal{std::int64_t{1} << 42};

struct Emulation {
  memory::AllocatorProfile profile;
  memory::AllocatorSettings settings;
  Bytes total = kUnknownTotal;
  std::optional<Bytes> allowed;
};

std::optional<Emulation> set_up(const AllocatorLog& log, const ReplayOptions& options,
                                ReplayResult& result, Diagnostics& diagnostics) {
  Emulation emulation;
  const memory::AllocatorProfile* profile = &memory::newest_allocator_profile();
  if (!log.torch.name.empty()) {
    profile = memory::find_allocator_profile(log.torch, diagnostics);
    if (profile == nullptr) return std::nullopt;
  }
  emulation.profile = *profile;
  auto settings = memory::parse_allocator_settings(log.conf, *profile, diagnostics);
  if (settings && options.set) {
    settings = memory::parse_allocator_settings(*options.set, *profile, diagnostics, *settings);
  }
  if (!settings) return std::nullopt;
  emulation.settings = *settings;
  if (log.total) emulation.total = *log.total;
  if (log.cap && log.total) {
    // As set_per_process_memory_fraction(cap / total) computes it, rounding included.
    const double total = static_cast<double>(log.total->count);
    const double fraction = static_cast<double>(log.cap->count) / total;
    emulation.allowed = Bytes{static_cast<std::int64_t>(fraction * total)};
  }
  if (options.capacity) {
    emulation.total = *options.capacity;
    emulation.allowed.reset();
  }
  result.name = log.name;
  result.release = profile->since;
  result.settings = to_text(emulation.settings);
  result.what_if = options.is_what_if();
  if (!log.settings_known) {
    result.notes.emplace_back(
        "no settings beside the recording: PyTorch's defaults and no memory cap were taken");
  }
  if (options.capacity) {
    result.limit = options.capacity;
  } else if (emulation.allowed) {
    result.limit = emulation.allowed;
  } else {
    result.limit = log.total;
  }
  return emulation;
}

CachingAllocator make_allocator(const Emulation& emulation, memory::Driver& driver) {
  CachingAllocator allocator(emulation.profile, emulation.settings, driver, emulation.total);
  if (emulation.allowed) allocator.allow(*emulation.allowed);
  return allocator;
}

void take_figures(const CachingAllocator& allocator, ReplayResult& result) {
  const memory::MemoryStats& stats = allocator.stats();
  result.peak_allocated = stats.allocated.peak;
  result.peak_reserved = stats.reserved.peak;
  result.end_allocated = stats.allocated.current;
  result.end_reserved = stats.reserved.current;
  result.ooms = stats.num_ooms;
  result.alloc_retries = stats.num_alloc_retries;
}

// ---- what-if ------------------------------------------------------------------------------------

// The requests and frees of a recording through the emulator's own driver.
class WhatIf {
 public:
  WhatIf(const AllocatorLog& log, const Emulation& emulation)
      : log_(log),
        profile_(emulation.profile),
        streams_(log),
        device_(emulation.total),
        driver_(device_),
        allocator_(make_allocator(emulation, driver_)) {}

  void run(ReplayResult& result) {
    if (log_.is_corpus) {
      run_calls(result);
    } else {
      run_events(result);
    }
    take_figures(allocator_, result);
  }

 private:
  void run_calls(ReplayResult& result);
  void run_events(ReplayResult& result);
  BlockId allocate(Bytes size, memory::Stream stream, std::int64_t operation, ReplayResult& result);
  void free(BlockId block, bool deferred);
  void complete(BlockId block);
  bool ends_empty_cache(std::size_t index) const;

  const AllocatorLog& log_;
  memory::AllocatorProfile profile_;
  StreamIndex streams_;
  memory::DeviceMemory device_;
  memory::ModelDriver driver_;
  CachingAllocator allocator_;
  std::unordered_map<std::uint32_t, bool> waiting_;  // block ids
};

BlockId WhatIf::allocate(Bytes size, memory::Stream stream, std::int64_t operation,
                         ReplayResult& result) {
  const memory::AllocResult answer = allocator_.allocate(size, stream);
  if (answer.synchronized) waiting_.clear();
  if (answer.ok) return answer.block;
  if (result.first_ooms.size() < 10) {
    memory::OomFigures figures;
    figures.tried = answer.segment_size;
    figures.total = device_.total();
    figures.free = device_.free();
    figures.allowed = allocator_.allowed();
    figures.allocated = allocator_.stats().allocated.current;
    figures.reserved = allocator_.stats().reserved.current;
    result.first_ooms.push_back({operation, memory::oom_message(profile_, figures)});
  }
  return {};
}

void WhatIf::free(BlockId block, bool deferred) {
  if (!block.valid()) return;
  if (deferred) allocator_.record_stream(block, streams_.unused());
  if (!allocator_.free(block)) waiting_[block.value] = true;
}

void WhatIf::complete(BlockId block) {
  if (block.valid() && waiting_.erase(block.value) > 0) allocator_.complete(block);
}

void WhatIf::run_calls(ReplayResult& result) {
  const memory::Stream side = streams_[log_.side_stream];
  std::vector<BlockId> blocks(log_.allocations);
  std::vector<BlockId> passed;  // both streams were synchronised: complete at the next look
  for (const AllocatorCall& call : log_.calls) {
    const std::int64_t operation = result.operations++;
    if (call.kind == AllocatorCall::Kind::free) {
      const BlockId block = blocks[call.allocation];
      const bool deferred = call.recorded && block.valid() && allocator_.stream(block) != side;
      free(block, deferred);
      if (deferred) passed.push_back(block);
      continue;
    }
    for (const BlockId block : passed) complete(block);
    passed.clear();
    if (call.kind == AllocatorCall::Kind::empty_cache) {
      allocator_.empty_cache();
      continue;
    }
    const memory::Stream stream = call.on_side_stream ? side : streams_[0];
    const BlockId block = allocate(call.size, stream, operation, result);
    if (call.failed) {
      free(block, false);
    } else {
      blocks[call.allocation] = block;
    }
  }
}

// Segments that were freed without a request after them: empty_cache().
bool WhatIf::ends_empty_cache(std::size_t index) const {
  const auto is_release = [](AllocatorAction action) {
    return action == AllocatorAction::segment_free || action == AllocatorAction::segment_unmap;
  };
  if (!is_release(log_.events[index].action)) return false;
  if (index + 1 == log_.events.size()) return true;
  const AllocatorAction after = log_.events[index + 1].action;
  return after == AllocatorAction::alloc || after == AllocatorAction::free_requested;
}

void WhatIf::run_events(ReplayResult& result) {
  std::unordered_map<std::uint64_t, BlockId> live;
  for (std::size_t i = 0; i < log_.events.size(); ++i) {
    const AllocatorEvent& event = log_.events[i];
    const std::int64_t operation = result.operations++;
    switch (event.action) {
      case AllocatorAction::alloc:
        live[event.address] = allocate(event.size, streams_[event.stream], operation, result);
        break;
      case AllocatorAction::oom:
        free(allocate(event.size, streams_[event.stream], operation, result), false);
        break;
      case AllocatorAction::free_requested: {
        const bool at_once = i + 1 < log_.events.size() &&
                             log_.events[i + 1].action == AllocatorAction::free_completed &&
                             log_.events[i + 1].address == event.address;
        free(live[event.address], !at_once);
        break;
      }
      case AllocatorAction::free_completed:
        complete(live[event.address]);
        live.erase(event.address);
        break;
      default:
        if (ends_empty_cache(i)) {
          allocator_.empty_cache();
          waiting_.clear();
        }
        break;
    }
  }
}

// A what-if is worth what the emulator is worth on the recording as it stands.
void note_own_differences(const AllocatorLog& log, ReplayResult& result) {
  Diagnostics ignored;  // the settings were read once already
  const auto proof = replay(log, {}, ignored);
  if (!proof || proof->differences == 0) return;
  result.notes.push_back(fmt::format(
      "under its own settings {} of {} operations differ from the recording: this answer is no "
      "better founded",
      group_digits(proof->differences), group_digits(proof->operations)));
}

bool ran_out_of_memory(const AllocatorLog& log) {
  const auto failed = [](const AllocatorEvent& event) {
    return event.action == AllocatorAction::oom;
  };
  return std::any_of(log.events.begin(), log.events.end(), failed);
}

std::string verdict(const ReplayResult& result) {
  if (!result.what_if) {
    return result.differences == 0
               ? fmt::format("{}: all {} operations agree with the recording.", result.name,
                             group_digits(result.operations))
               : fmt::format("{}: {} of {} operations differ from the recording.", result.name,
                             group_digits(result.differences), group_digits(result.operations));
  }
  const std::string with =
      result.settings.empty() ? std::string("the default settings") : result.settings;
  if (result.ooms == 0) {
    return fmt::format("{}: with {} the run would have fitted: peak reserved {}.", result.name,
                       with, memory::format_size(result.peak_reserved));
  }
  return fmt::format(
      "{}: with {} the run would have run out of memory at operation {} of {} ({} requests fail if "
      "it goes on).",
      result.name, with, group_digits(result.first_ooms.front().operation),
      group_digits(result.operations), group_digits(result.ooms));
}

}  // namespace

std::optional<ReplayResult> replay(const AllocatorLog& log, const ReplayOptions& options,
                                   Diagnostics& diagnostics) {
  ReplayResult result;
  const auto emulation = set_up(log, options, result, diagnostics);
  if (!emulation) return std::nullopt;
  if (options.is_what_if()) {
    WhatIf(log, *emulation).run(result);
    note_own_differences(log, result);
    if (ran_out_of_memory(log)) {
      result.notes.emplace_back(
          "the recorded run ran out of memory itself: what it would have done had it not is "
          "unknown");
    }
    return result;
  }
  if (log.events.empty()) {
    result.notes.emplace_back("no events in the recording: segment addresses are made up");
  }
  const StreamIndex streams(log);
  RecordedDriver driver(log.events, streams);
  CachingAllocator allocator = make_allocator(*emulation, driver);
  prove(log, emulation->profile, emulation->total, streams, driver, allocator, result);
  take_figures(allocator, result);
  return result;
}

std::string to_text(const ReplayResult& result) {
  std::string text = verdict(result) + "\n";
  if (result.first_difference) {
    const ReplayDifference& first = *result.first_difference;
    text += fmt::format("  first difference at operation {}: {}: {} recorded, {} emulated\n",
                        first.operation, first.what, first.expected, first.got);
  }
  TextTable table({"", "GiB", "bytes"}, {false, true, true});
  const auto row = [&](const char* name, Bytes value) {
    table.add({name, fmt::format("{:.2f}", static_cast<double>(value.count) / 1073741824.0),
               group_digits(value.count)});
  };
  row("peak allocated", result.peak_allocated);
  row("peak reserved", result.peak_reserved);
  row("allocated at the end", result.end_allocated);
  row("reserved at the end", result.end_reserved);
  if (result.limit) row("limit", *result.limit);
  text += table.text(2);
  text += fmt::format("  {} out-of-memory, {} retries after returning the cache; PyTorch {}, {}\n",
                      result.ooms, result.alloc_retries, result.release,
                      result.settings.empty() ? "default settings" : result.settings);
  for (const ReplayOom& oom : result.first_ooms) {
    text += fmt::format("  operation {}: {}\n", oom.operation, oom.message);
  }
  for (const std::string& note : result.notes) text += fmt::format("  note: {}\n", note);
  return text;
}

}  // namespace sim::study
