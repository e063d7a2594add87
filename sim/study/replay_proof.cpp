#include "sim/study/replay_proof.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "sim/base/units_text.h"
#include "sim/memory/oom_message.h"

namespace sim::study {
namespace {

using memory::AllocResult;
using memory::BlockId;
using memory::CachingAllocator;

bool is_user_event(AllocatorAction action) {
  return action == AllocatorAction::alloc || action == AllocatorAction::oom ||
         action == AllocatorAction::free_requested;
}

bool is_release(AllocatorAction action) {
  return action == AllocatorAction::segment_free || action == AllocatorAction::segment_unmap;
}

// The stretch of completions and segment events before the next request or free.
struct Run {
  std::size_t completions = 0;  // at its beginning
  bool has_segments = false;
  bool has_release = false;
  const AllocatorEvent* end = nullptr;  // the request or free, or null
};

// Text between two marks of a message, or empty.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  const std::size_t from = begin + before.size();
  const std::size_t end = text.find(after, from);
  return end == std::string_view::npos ? std::string_view{} : text.substr(from, end - from);
}

// "1.98 GiB" as printed by format_size; the nearest byte count prints the same again.
Bytes printed_size(std::string_view text) {
  const std::string_view number = text.substr(0, text.find(' '));
  if (text.ends_with(" bytes")) {
    return parse_bytes(std::string(number) + " B").value_or(Bytes{});
  }
  return parse_bytes(text).value_or(Bytes{});
}

// The processes that a recorded message lists.
std::vector<memory::DeviceProcess> printed_processes(std::string_view message) {
  constexpr std::string_view kOwn = "Including non-PyTorch memory, this process has ";
  constexpr std::string_view kInUse = " memory in use. ";
  std::vector<memory::DeviceProcess> processes;
  std::string_view rest = message.substr(std::min(message.find(" is free. "), message.size()));
  rest.remove_prefix(std::min<std::size_t>(rest.size(), 10));
  for (;;) {
    memory::DeviceProcess process;
    if (rest.starts_with(kOwn)) {
      process.is_this_process = true;
    } else if (rest.starts_with("Process ")) {
      for (const char c : between(rest, "Process ", " has ")) {
        if (c < '0' || c > '9' || process.pid > 1'000'000'000) return processes;
        process.pid = process.pid * 10 + (c - '0');
      }
    } else {
      return processes;
    }
    process.used = printed_size(between(rest, " has ", kInUse));
    processes.push_back(process);
    const std::size_t end = rest.find(kInUse);
    if (end == std::string_view::npos) return processes;
    rest.remove_prefix(end + kInUse.size());
  }
}

class Prover {
 public:
  Prover(const AllocatorLog& log, const memory::AllocatorProfile& profile, Bytes total,
         const StreamIndex& streams, RecordedDriver& driver, CachingAllocator& allocator,
         ReplayResult& result)
      : log_(log),
        profile_(profile),
        total_(total),
        streams_(streams),
        driver_(driver),
        allocator_(allocator),
        result_(result) {}

  void prove_calls();
  void prove_events();

 private:
  Run look_ahead() const;
  template <class Attempt>
  void first_that_agrees(std::size_t attempts, Attempt attempt);
  void complete_next(std::size_t count);
  BlockId request(Bytes size, memory::Stream stream, bool fails);
  bool release(BlockId block, bool deferred);
  void finish_operation(std::int64_t events);

  void prove_request_event(const Run& run);
  void prove_alloc_call(const AllocatorCall& call);
  void prove_free_call(const AllocatorCall& call);
  void compare_counters(const AllocatorCounters& recorded);
  void compare_message(const AllocatorCall& call);
  void compare(const char* what, std::int64_t recorded, std::int64_t emulated) {
    if (recorded != emulated) {
      driver_.disagree(what, fmt::format("{}", recorded), fmt::format("{}", emulated));
    }
  }

  const AllocatorLog& log_;
  const memory::AllocatorProfile& profile_;
  Bytes total_;
  const StreamIndex& streams_;
  RecordedDriver& driver_;
  CachingAllocator& allocator_;
  ReplayResult& result_;
  std::unordered_map<std::uint64_t, BlockId> live_;  // by recorded address
  std::vector<BlockId> blocks_;                      // by tensor number
  std::vector<std::uint64_t> addresses_;             // by tensor number
  Bytes last_segment_size_;
};

Run Prover::look_ahead() const {
  Run run;
  for (std::size_t i = driver_.position(); i < log_.events.size(); ++i) {
    const AllocatorEvent& event = log_.events[i];
    if (is_user_event(event.action)) {
      run.end = &event;
      break;
    }
    if (event.action == AllocatorAction::free_completed) {
      if (!run.has_segments) ++run.completions;
    } else {
      run.has_segments = true;
      run.has_release = run.has_release || is_release(event.action);
    }
  }
  return run;
}

// Runs attempt(0), attempt(1), ... from the same state until one leaves no disagreement; if none
// does, the first one stands.
template <class Attempt>
void Prover::first_that_agrees(std::size_t attempts, Attempt attempt) {
  if (attempts <= 1) {
    attempt(0);
    return;
  }
  const CachingAllocator allocator = allocator_;
  const RecordedDriver driver = driver_;
  const auto live = live_;
  const std::size_t before = driver_.mismatches();
  const auto restore = [&] {
    allocator_ = allocator;
    driver_ = driver;
    live_ = live;
  };
  for (std::size_t i = 0; i < attempts; ++i) {
    attempt(i);
    if (driver_.mismatches() == before) return;
    restore();
  }
  attempt(0);
}

// Completes the blocks of the next `count` events.
void Prover::complete_next(std::size_t count) {
  for (; count > 0; --count) {
    const AllocatorEvent* event = driver_.peek();
    if (driver_.waiting().erase(event->address) > 0) {
      const auto found = live_.find(event->address);
      if (found != live_.end()) {
        if (found->second.valid()) allocator_.complete(found->second);
        live_.erase(found);
      }
    } else {
      driver_.disagree("completion", describe(*event), "nothing waits there");
    }
    driver_.advance();
  }
}

// One malloc: the emulator answers, its driver calls consume recorded segment events, and the
// recorded alloc or oom has to come next.
BlockId Prover::request(Bytes size, memory::Stream stream, bool fails) {
  const AllocResult answer = allocator_.allocate(size, stream);
  last_segment_size_ = answer.segment_size;
  if (answer.synchronized) {
    driver_.skip_completions();
    for (const memory::Address address : driver_.waiting()) live_.erase(address);
    if (!driver_.waiting().empty()) {
      driver_.disagree("completion", "blocks still wait", "all events were synchronised");
      driver_.waiting().clear();
    }
  }
  if (answer.ok == fails) {
    driver_.disagree("outcome", fails ? "out of memory" : "ok", fails ? "ok" : "out of memory");
  }
  if (fails && answer.ok) {
    allocator_.free(answer.block);
    return {};
  }
  return answer.block;
}

// Frees a block; true if it waits for other streams now.
bool Prover::release(BlockId block, bool deferred) {
  if (!block.valid()) return false;
  if (deferred) allocator_.record_stream(block, streams_.unused());
  return !allocator_.free(block);
}

void Prover::finish_operation(std::int64_t events) {
  if (driver_.mismatches() > 0) {
    ++result_.differences;
    if (!result_.first_difference) {
      const Mismatch& first = *driver_.first_mismatch();
      result_.first_difference = {result_.operations, first.what, first.expected, first.got};
    }
    driver_.forget_mismatches();
  }
  result_.operations += events;
}

// ---- events files -------------------------------------------------------------------------------

void Prover::prove_events() {
  while (driver_.peek() != nullptr) {
    const std::size_t begin = driver_.position();
    const Run run = look_ahead();
    const AllocatorEvent& event = *driver_.peek();
    if (event.action == AllocatorAction::free_requested) {
      // Whether other streams used the block is not recorded: its completion follows at once if
      // not.
      release(live_[event.address], true);
      driver_.waiting().insert(event.address);
      driver_.advance();
    } else if (run.completions > 0 && !run.has_segments &&
               (run.end == nullptr || run.end->action != AllocatorAction::oom)) {
      complete_next(1);
    } else {
      prove_request_event(run);
    }
    if (driver_.position() == begin) driver_.advance();
    finish_operation(static_cast<std::int64_t>(driver_.position() - begin));
  }
}

// A request with what precedes it. Which completions it found at its start and which came of a
// synchronisation, and whether empty_cache() was called before it, the recording does not say: the
// reading that agrees is taken, the likeliest first.
void Prover::prove_request_event(const Run& run) {
  constexpr std::size_t kMostReadings = 64;
  const bool asks = run.end != nullptr && run.end->action != AllocatorAction::free_requested;
  const std::size_t plain = asks ? std::min(run.completions + 1, kMostReadings) : 0;
  const std::size_t emptied = run.has_release ? 1 : 0;
  const auto attempt = [&](std::size_t reading) {
    if (reading >= plain) {
      allocator_.empty_cache();
      driver_.skip_completions();
      if (!asks) return;
      complete_next(look_ahead().completions);
    } else {
      complete_next(run.completions - reading);
    }
    const bool fails = run.end->action == AllocatorAction::oom;
    const BlockId block = request(run.end->size, streams_[run.end->stream], fails);
    const AllocatorEvent* event = driver_.peek();
    if (event != run.end) {
      driver_.disagree("event", driver_.describe_next(), describe(*run.end));
      while (driver_.peek() != run.end) driver_.advance();
    }
    driver_.advance();
    if (fails) return;
    live_[run.end->address] = block;
    if (block.valid() && allocator_.address(block) != run.end->address) {
      driver_.disagree("address", fmt::format("{:#x}", run.end->address),
                       fmt::format("{:#x}", allocator_.address(block)));
    }
  };
  first_that_agrees(std::max<std::size_t>(1, plain + emptied), attempt);
}

// ---- corpora ------------------------------------------------------------------------------------

void Prover::prove_calls() {
  blocks_.resize(log_.allocations);
  addresses_.resize(log_.allocations);
  for (const AllocatorCall& call : log_.calls) {
    switch (call.kind) {
      case AllocatorCall::Kind::alloc:
        prove_alloc_call(call);
        break;
      case AllocatorCall::Kind::free:
        prove_free_call(call);
        break;
      case AllocatorCall::Kind::empty_cache:
        allocator_.empty_cache();
        driver_.skip_completions();
        driver_.waiting().clear();
        break;
    }
    compare_counters(call.after);
    finish_operation(1);
  }
  if (driver_.peek() != nullptr) {
    driver_.disagree("event", driver_.describe_next(), "the end of the calls");
    --result_.operations;
    finish_operation(1);
  }
}

void Prover::prove_alloc_call(const AllocatorCall& call) {
  const memory::Stream stream = streams_[call.on_side_stream ? log_.side_stream : 0];
  const Run run = look_ahead();
  BlockId block;
  const auto attempt = [&](std::size_t reading) {
    complete_next(run.completions - reading);
    block = request(call.size, stream, call.failed);
  };
  first_that_agrees(run.has_segments ? std::min<std::size_t>(run.completions + 1, 64) : 1, attempt);
  blocks_[call.allocation] = block;
  if (call.failed) compare_message(call);
  if (!driver_.has_events()) return;
  const AllocatorAction action = call.failed ? AllocatorAction::oom : AllocatorAction::alloc;
  const AllocatorEvent* event = driver_.peek();
  if (event == nullptr || event->action != action) {
    driver_.disagree("event", driver_.describe_next(), std::string(to_text(action)));
    return;
  }
  driver_.advance();
  if (!block.valid()) return;
  addresses_[call.allocation] = event->address;
  live_[event->address] = block;
  compare("requested size", event->size.count, call.size.count);
  if (allocator_.address(block) != event->address) {
    driver_.disagree("address", fmt::format("{:#x}", event->address),
                     fmt::format("{:#x}", allocator_.address(block)));
  }
}

void Prover::prove_free_call(const AllocatorCall& call) {
  const BlockId block = blocks_[call.allocation];
  const std::uint64_t address = addresses_[call.allocation];
  if (!block.valid()) return;
  const memory::Stream side = streams_[log_.side_stream];
  const bool waits = release(block, call.recorded && allocator_.stream(block) != side);
  if (waits && driver_.has_events()) {
    driver_.waiting().insert(address);
  } else {
    live_.erase(address);
  }
  if (!driver_.has_events()) return;
  for (const AllocatorAction action :
       {AllocatorAction::free_requested, AllocatorAction::free_completed}) {
    if (waits && action == AllocatorAction::free_completed) break;
    const AllocatorEvent* event = driver_.peek();
    if (event == nullptr || event->action != action || event->address != address) {
      driver_.disagree("event", driver_.describe_next(),
                       fmt::format("{} at {:#x}", to_text(action), address));
      return;
    }
    driver_.advance();
  }
}

void Prover::compare_counters(const AllocatorCounters& recorded) {
  const memory::MemoryStats& stats = allocator_.stats();
  compare("allocated", recorded.allocated.count, stats.allocated.current.count);
  compare("active", recorded.active.count, stats.active.current.count);
  compare("reserved", recorded.reserved.count, stats.reserved.current.count);
  compare("requested", recorded.requested.count, stats.requested.current.count);
  compare("inactive_split", recorded.inactive_split.count, stats.inactive_split.current.count);
  compare("segments", recorded.segments, stats.segments.current);
  compare("num_alloc_retries", recorded.retries, stats.num_alloc_retries);
  compare("num_ooms", recorded.ooms, stats.num_ooms);
}

// What only the device knows (free memory, the processes on it) is taken from the recorded text.
void Prover::compare_message(const AllocatorCall& call) {
  if (call.message.empty()) return;
  memory::OomFigures figures;
  figures.tried = last_segment_size_;
  figures.total = total_;
  figures.free = printed_size(between(call.message, " of which ", " is free."));
  if (figures.free == Bytes{})
    figures.free = printed_size(between(call.message, "allocated; ", " free;"));
  figures.allowed = allocator_.allowed();
  figures.allocated = allocator_.stats().allocated.current;
  figures.reserved = allocator_.stats().reserved.current;
  figures.processes = printed_processes(call.message);
  const std::string text = memory::oom_message(profile_, figures);
  if (text != call.message) driver_.disagree("message", call.message, text);
  if (result_.first_ooms.size() < 10) result_.first_ooms.push_back({result_.operations, text});
}

}  // namespace

void prove(const AllocatorLog& log, const memory::AllocatorProfile& profile, Bytes total,
           const StreamIndex& streams, RecordedDriver& driver, CachingAllocator& allocator,
           ReplayResult& result) {
  Prover prover(log, profile, total, streams, driver, allocator, result);
  if (log.is_corpus) {
    prover.prove_calls();
  } else {
    prover.prove_events();
  }
}

}  // namespace sim::study
