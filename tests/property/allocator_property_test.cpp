// Laws that the caching allocator keeps under any sequence of calls: blocks never overlap, bytes
// are conserved, counters equal a naive recount.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sim/memory/caching_allocator.h"
#include "tests/support/catch.h"

using namespace sim;
using namespace sim::memory;

namespace {

constexpr Bytes kTotal{std::int64_t{2} << 30};

struct Held {
  BlockId block;
  Bytes requested;
};

struct Trace {
  Trace(const std::string& conf, const std::string& torch, std::uint64_t seed)
      : random(seed), device(kTotal), driver(device), allocator(make(conf, torch)) {}

  CachingAllocator make(const std::string& conf, const std::string& torch) {
    Diagnostics diagnostics;
    const AllocatorProfile* profile = find_allocator_profile({torch, {}}, diagnostics);
    REQUIRE(profile != nullptr);
    const auto settings = parse_allocator_settings({conf, {}}, *profile, diagnostics);
    REQUIRE(settings);
    return {*profile, *settings, driver, kTotal};
  }

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
  Bytes size() {
    const std::int64_t kind = below(20);
    if (kind < 7) return Bytes{1 + below(4096)};
    if (kind < 12) return Bytes{4096 + below(1 << 20)};
    if (kind < 16) return Bytes{(1 << 20) + below(9 << 20)};
    if (kind < 19) return Bytes{(10 << 20) + below(54 << 20)};
    return Bytes{(64 << 20) + below(336 << 20)};
  }

  void step();
  void check() const;

  std::mt19937_64 random;
  DeviceMemory device;
  ModelDriver driver;
  CachingAllocator allocator;
  std::vector<Held> live, waiting;
};

void Trace::step() {
  const std::int64_t kind = below(100);
  if (kind < 1) {
    allocator.empty_cache();
    waiting.clear();
  } else if (kind < 45 && !live.empty()) {
    const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(live.size())));
    const Held held = live[at];
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    if (!allocator.free(held.block)) waiting.push_back(held);
  } else if (kind < 50 && !live.empty()) {
    const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(live.size())));
    allocator.record_stream(live[at].block, static_cast<Stream>(below(3)));
  } else {
    while (!waiting.empty() && below(2) == 0) {
      allocator.complete(waiting.front().block);
      waiting.erase(waiting.begin());
    }
    const Bytes wanted = size();
    const AllocResult result = allocator.allocate(wanted, static_cast<Stream>(below(3)));
    if (result.synchronized) waiting.clear();
    if (result.ok) live.push_back({result.block, wanted});
  }
}

void Trace::check() const {
  Bytes reserved, allocated, active, requested, inactive_split;
  std::int64_t segments = 0, blocks = 0;
  Address end = 0;
  for (const SegmentView& segment : allocator.snapshot()) {
    REQUIRE(segment.address >= end);  // segments do not overlap
    end = segment.address;
    for (const SegmentView::Block& block : segment.blocks) {
      REQUIRE(block.address == end);  // blocks fill their segment without gaps
      REQUIRE(block.size > Bytes{});
      end += static_cast<Address>(block.size.count);
      if (block.allocated) allocated += block.size;
      if (block.allocated) ++blocks;
      if (block.active) active += block.size;
      if (block.active) requested += block.requested;
      const bool split = segment.blocks.size() > 1;
      if (!block.active && split && !segment.expandable) inactive_split += block.size;
    }
    REQUIRE(end == segment.address + static_cast<Address>(segment.size.count));
    reserved += segment.size;
    if (!segment.expandable) ++segments;
  }
  const MemoryStats& stats = allocator.stats();
  REQUIRE(stats.reserved.current == reserved);
  REQUIRE(stats.allocated.current == allocated);
  REQUIRE(stats.active.current == active);
  REQUIRE(stats.requested.current == requested);
  REQUIRE(stats.inactive_split.current == inactive_split);
  REQUIRE(stats.segments.current == segments);
  REQUIRE(stats.allocations.current == blocks);
  REQUIRE(device.used() == reserved);
  REQUIRE(blocks == static_cast<std::int64_t>(live.size()));
  Bytes asked;
  for (const Held& held : live) asked += held.requested;
  for (const Held& held : waiting) asked += held.requested;
  REQUIRE(asked == requested);
  for (const Held& held : live) {
    REQUIRE(allocator.size(held.block) >= held.requested);
    REQUIRE(allocator.requested(held.block) == held.requested);
  }
}

}  // namespace

TEST_CASE("Blocks never overlap and counters equal a recount", "[property]") {
  const std::uint64_t seed = std::random_device{}();
  const struct {
    const char* conf;
    const char* torch;
    double fraction;
  } cases[] = {
      {"", "1.13.1", 1},
      {"", "2.11.0", 0.5},
      {"max_split_size_mb:64", "2.0.1", 0.5},
      {"max_split_size_mb:32,max_non_split_rounding_mb:40", "2.6.0", 1},
      {"roundup_power2_divisions:4", "2.6.0", 1},
      {"roundup_power2_divisions:1", "2.0.1", 1},
      {"garbage_collection_threshold:0.5", "2.6.0", 0.7},
      {"garbage_collection_threshold:0.3,max_split_size_mb:100", "2.11.0", 0.5},
      {"expandable_segments:True", "2.6.0", 1},
      {"expandable_segments:True,large_segment_size_mb:48", "2.11.0", 0.5},
  };
  for (const auto& c : cases) {
    INFO("seed " << seed << ", " << c.conf << ", torch " << c.torch);
    Trace trace(c.conf, c.torch, seed);
    trace.allocator.set_memory_fraction(c.fraction);
    for (int i = 0; i < 3000; ++i) {
      trace.step();
      if (i % 10 == 0) trace.check();
    }
    while (!trace.live.empty()) {
      trace.allocator.free(trace.live.back().block);
      trace.live.pop_back();
    }
    trace.allocator.empty_cache();
    REQUIRE(trace.allocator.stats().reserved.current == Bytes{});
    REQUIRE(trace.device.free() == kTotal);
  }
}
