// The comparing half of a replay: walks a recording and the emulator side by side.
#pragma once

#include "sim/base/units.h"
#include "sim/memory/allocator_profile.h"
#include "sim/memory/caching_allocator.h"
#include "sim/study/replay.h"
#include "sim/study/replay_driver.h"
#include "sim/timeline/read_allocator_log.h"

namespace sim::study {

// Fills operations, differences, first_difference and first_ooms of `result`.
void prove(const AllocatorLog& log, const memory::AllocatorProfile& profile, Bytes total,
           const StreamIndex& streams, RecordedDriver& driver, memory::CachingAllocator& allocator,
           ReplayResult& result);

}  // namespace sim::study
