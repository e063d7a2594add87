#include "sim/engine/phase_log.h"

#include <algorithm>

#include "sim/base/saturating.h"

namespace sim::engine {

void PhaseLog::begin(program::PhaseId phase, Instant now) {
  // What precedes the first phase, if it took any time or memory, is a phase of its own.
  if (begun_ || now > Instant{} || allocated_.count > 0 || open_.peak_allocated.count > 0 ||
      device_used_ != open_.peak_device_used || host_anonymous_.count > 0) {
    end(now);
  }
  begun_ = true;
  phase_ = phase;
  open_ = {};
  open_.begin = now;
  open_.peak_allocated = allocated_;
  open_.peak_reserved = reserved_;
  open_.peak_device_used = device_used_;
  open_.peak_by_class = by_class_;
  open_.host_anonymous = host_anonymous_;
  open_.host_pinned = host_pinned_;
}

void PhaseLog::end(Instant now) {
  open_.end = now;
  open_.time = now - open_.begin;
  open_.end_allocated = allocated_;
  open_.end_reserved = reserved_;
  open_.end_by_class = by_class_;
  records_.push_back(open_);
  phases_.push_back(phase_);
}

void PhaseLog::hold(Bytes reserved, Bytes device_used) {
  reserved_ = reserved;
  device_used_ = device_used;
  open_.peak_reserved = std::max(open_.peak_reserved, reserved);
  open_.peak_device_used = std::max(open_.peak_device_used, device_used);
}

void PhaseLog::hold_on_host(HostMemoryKind kind, Bytes change) {
  if (kind == HostMemoryKind::anonymous) {
    host_anonymous_ += change;
    open_.host_anonymous = std::max(open_.host_anonymous, host_anonymous_);
  } else if (kind == HostMemoryKind::pinned) {
    host_pinned_ += change;
    open_.host_pinned = std::max(open_.host_pinned, host_pinned_);
  }
}

std::vector<PhaseRecord> PhaseLog::records(const program::Program& program) const {
  std::vector<PhaseRecord> named = records_;
  for (std::size_t i = 0; i < named.size(); ++i) named[i].name = name_of(phases_[i], program);
  return named;
}

std::string PhaseLog::name_of(program::PhaseId phase, const program::Program& program) {
  return phase.valid() ? program.phases[phase] : "init";
}

PhaseRecord PhaseLog::open_since(Instant now) const {
  PhaseRecord open = open_;
  open.begin = Instant{} + (open_.begin - now);
  return open;
}

void PhaseLog::repeat(std::size_t ended, std::int64_t retries, std::int64_t times,
                      Duration period) {
  const Duration by = saturating_multiply(period, times);
  for (std::size_t i = ended; i < records_.size(); ++i) {
    PhaseRecord& record = records_[i];
    record.end = saturating_add(record.end, by);
    record.time = saturating_multiply(record.time, 1 + times);
    record.alloc_retries = saturating_multiply(record.alloc_retries, 1 + times);
  }
  // A phase that began before stays open all the time; one that began since, begins again.
  const std::int64_t more = saturating_multiply(retries_ - retries, times);
  if (ended == records_.size()) {
    open_.alloc_retries = saturating_add(open_.alloc_retries, more);
  } else {
    open_.begin = saturating_add(open_.begin, by);
  }
  retries_ = saturating_add(retries_, more);
}

}  // namespace sim::engine
