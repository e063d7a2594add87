#include "sim/study/replay_driver.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace sim::study {

using memory::Address;
using memory::Stream;

StreamIndex::StreamIndex(const AllocatorLog& log) : handles_{0, log.side_stream} {
  for (const AllocatorEvent& event : log.events) {
    if (event.stream != handles_.back()) handles_.push_back(event.stream);
    if (handles_.size() > 4096) {
      std::sort(handles_.begin(), handles_.end());
      handles_.erase(std::unique(handles_.begin(), handles_.end()), handles_.end());
    }
  }
  std::sort(handles_.begin(), handles_.end());
  handles_.erase(std::unique(handles_.begin(), handles_.end()), handles_.end());
}

Stream StreamIndex::operator[](std::uint64_t handle) const {
  return static_cast<Stream>(std::lower_bound(handles_.begin(), handles_.end(), handle) -
                             handles_.begin());
}

std::string describe(const AllocatorEvent& event) {
  return fmt::format("{} of {} B at {:#x} on stream {}", to_text(event.action), event.size.count,
                     event.address, event.stream);
}

std::string RecordedDriver::describe_next() const {
  const AllocatorEvent* event = peek();
  return event == nullptr ? "the end of the recording" : describe(*event);
}

void RecordedDriver::skip_completions() {
  for (const AllocatorEvent* event = peek();
       event != nullptr && event->action == AllocatorAction::free_completed &&
       waiting_.erase(event->address) > 0;
       event = peek()) {
    advance();
  }
}

// Consumes the next event if it is this one; else notes the disagreement.
bool RecordedDriver::take(AllocatorAction action, Address at, Bytes size, Stream stream) {
  if (!has_events()) return true;
  skip_completions();
  const AllocatorEvent mine{action, at, size, streams_->handle(stream)};
  const AllocatorEvent* event = peek();
  if (event != nullptr && event->action == action && event->address == at && event->size == size &&
      event->stream == mine.stream) {
    advance();
    return true;
  }
  disagree("segment", describe_next(), describe(mine));
  // The recording's own event of this kind is spent, so that one disagreement is counted once.
  if (event != nullptr && event->action == action) advance();
  return false;
}

std::optional<Address> RecordedDriver::allocate_segment(Bytes size, Stream stream) {
  if (!has_events()) {
    const Address at = invent(size);
    hold(at, size);
    return at;
  }
  const AllocatorEvent* event = peek();
  const bool refused = event != nullptr && (event->action == AllocatorAction::free_completed ||
                                            event->action == AllocatorAction::segment_free ||
                                            event->action == AllocatorAction::segment_unmap ||
                                            event->action == AllocatorAction::oom);
  if (refused) {
    skip_completions();
    event = peek();
    if (event == nullptr || event->action != AllocatorAction::segment_alloc) return std::nullopt;
  }
  Address at = event != nullptr && event->action == AllocatorAction::segment_alloc ? event->address
                                                                                   : invent(size);
  take(AllocatorAction::segment_alloc, at, size, stream);
  if (!hold(at, size)) {
    disagree("segment", "an address that is free", fmt::format("{:#x}", at));
    at = invent(size);
    hold(at, size);
  }
  return at;
}

void RecordedDriver::free_segment(Address at, Bytes size, Stream stream) {
  held_.erase(at);
  take(AllocatorAction::segment_free, at, size, stream);
}

// The recording shows a range only when its first pages are mapped, at its beginning.
Address RecordedDriver::reserve_range(Bytes size, Stream) {
  const AllocatorEvent* event = peek();
  if (event != nullptr && event->action == AllocatorAction::segment_map) return event->address;
  return invent(size);
}

bool RecordedDriver::map(Address at, Bytes size, Stream stream) {
  const AllocatorEvent* event = peek();
  if (event != nullptr &&
      (event->action == AllocatorAction::free_completed ||
       event->action == AllocatorAction::segment_unmap ||
       event->action == AllocatorAction::segment_free || event->action == AllocatorAction::oom)) {
    skip_completions();
    event = peek();
    if (event == nullptr || event->action != AllocatorAction::segment_map) return false;
  }
  take(AllocatorAction::segment_map, at, size, stream);
  if (hold(at, size)) return true;
  disagree("segment", "an address that is free", fmt::format("{:#x}", at));
  return false;
}

void RecordedDriver::unmap(Address at, Bytes size, Stream stream) {
  // Mapped stretches are held as they were mapped; cut this one out of them.
  const Address end = at + static_cast<Address>(size.count);
  auto it = held_.upper_bound(at);
  if (it != held_.begin()) --it;
  while (it != held_.end() && it->first < end) {
    const Address begin = it->first;
    const Address stop = begin + static_cast<Address>(it->second.count);
    if (stop <= at) {
      ++it;
      continue;
    }
    it = held_.erase(it);
    if (begin < at) held_.emplace(begin, Bytes{static_cast<std::int64_t>(at - begin)});
    if (stop > end) {
      it = held_.emplace(end, Bytes{static_cast<std::int64_t>(stop - end)}).first;
      ++it;
    }
  }
  take(AllocatorAction::segment_unmap, at, size, stream);
}

bool RecordedDriver::hold(Address at, Bytes size) {
  const auto after = held_.lower_bound(at);
  if (after != held_.end() && after->first < at + static_cast<Address>(size.count)) return false;
  if (after != held_.begin()) {
    const auto before = std::prev(after);
    if (before->first + static_cast<Address>(before->second.count) > at) return false;
  }
  held_.emplace_hint(after, at, size);
  return true;
}

Address RecordedDriver::invent(Bytes size) {
  const Address at = invented_;
  invented_ += static_cast<Address>(round_up(size, Bytes{2'097'152}).count);
  return at;
}

void RecordedDriver::disagree(std::string what, std::string expected, std::string got) {
  if (mismatches_++ == 0) {
    first_mismatch_ = {std::move(what), std::move(expected), std::move(got)};
  }
}

void RecordedDriver::forget_mismatches() {
  mismatches_ = 0;
  first_mismatch_.reset();
}

}  // namespace sim::study
