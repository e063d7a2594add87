#include "sim/memory/caching_allocator.h"

#include <string>

#include "tests/support/catch.h"

using namespace sim;
using namespace sim::memory;

namespace {

// An allocator of the newest release on a device of its own.
struct Bench {
  explicit Bench(AllocatorSettings settings = {}, Bytes total = 1_GiB,
                 const AllocatorProfile& profile = newest_allocator_profile())
      : device(total), driver(device), allocator(profile, settings, driver, total) {}

  BlockId take(Bytes size, Stream stream = 0) {
    const AllocResult result = allocator.allocate(size, stream);
    REQUIRE(result.ok);
    return result.block;
  }
  Bytes allocated() const { return allocator.stats().allocated.current; }
  Bytes reserved() const { return allocator.stats().reserved.current; }

  DeviceMemory device;
  ModelDriver driver;
  CachingAllocator allocator;
};

AllocatorSettings settings(const std::string& conf,
                           const AllocatorProfile& profile = newest_allocator_profile()) {
  Diagnostics diagnostics;
  const auto parsed = parse_allocator_settings({conf, {}}, profile, diagnostics);
  REQUIRE(parsed);
  return *parsed;
}

const AllocatorProfile& release(const std::string& name) {
  Diagnostics diagnostics;
  const AllocatorProfile* profile = find_allocator_profile({name, {}}, diagnostics);
  REQUIRE(profile != nullptr);
  return *profile;
}

}  // namespace

TEST_CASE("Requests are rounded to 512 bytes", "[memory]") {
  Bench b;
  CHECK(b.allocator.round_size(1_B) == 512_B);
  CHECK(b.allocator.round_size(512_B) == 512_B);
  CHECK(b.allocator.round_size(513_B) == 1024_B);
  CHECK(b.allocator.round_size(1_MiB) == 1_MiB);
}

TEST_CASE("Segments are 2 MiB, 20 MiB or the request rounded to 2 MiB", "[memory]") {
  Bench b;
  CHECK(b.allocator.segment_size(1_MiB) == 2_MiB);
  CHECK(b.allocator.segment_size(1_MiB + 512_B) == 20_MiB);
  CHECK(b.allocator.segment_size(10_MiB - 512_B) == 20_MiB);
  CHECK(b.allocator.segment_size(10_MiB) == 10_MiB);
  CHECK(b.allocator.segment_size(10_MiB + 512_B) == 12_MiB);
  Bench large(settings("large_segment_size_mb:64"));
  CHECK(large.allocator.segment_size(2_MiB) == 64_MiB);
}

TEST_CASE("Divisions of a power of two round up", "[memory]") {
  Bench b(settings("roundup_power2_divisions:4"));
  CHECK(b.allocator.round_size(1200_B) == 1536_B);  // not above 512 * 4: plain rounding
  CHECK(b.allocator.round_size(2049_B) == 2560_B);
  CHECK(b.allocator.round_size(1200_KiB) == 1280_KiB);
  CHECK(b.allocator.round_size(2_MiB) == 2_MiB);
  CHECK(b.allocator.round_size(7_MiB + 1_B) == 8_MiB);
}

TEST_CASE("A list of divisions differs by interval", "[memory]") {
  const std::string conf = "roundup_power2_divisions:[4:2,64:8,>:1]";
  Bench b(settings(conf));
  CHECK(b.allocator.round_size(5_MiB) == 6_MiB);     // [4, 8): 2 divisions
  CHECK(b.allocator.round_size(2500_KiB) == 3_MiB);  // below the first boundary: its divisions too
  CHECK(b.allocator.round_size(65_MiB) == 72_MiB);   // [64, 128): 8 divisions
  CHECK(b.allocator.round_size(9_MiB + 1_B) == 9_MiB + 512_B);      // in between: none
  CHECK(b.allocator.round_size(129_MiB + 1_B) == 129_MiB + 512_B);  // one division: 512 bytes
  // Up to 2.8 the value after '>' also replaced the last interval; up to 2.4 one division left the
  // size as it is.
  Bench old(settings(conf, release("2.4")), 1_GiB, release("2.4"));
  CHECK(old.allocator.round_size(65_MiB + 1_B) == 65_MiB + 1_B);
}

TEST_CASE("1.13 does not round above the bypass threshold", "[memory]") {
  const AllocatorProfile& profile = release("1.13.1");
  Bench b(settings("roundup_power2_divisions:4,roundup_bypass_threshold_mb:8", profile), 1_GiB,
          profile);
  CHECK(b.allocator.round_size(7_MiB + 1_B) == 8_MiB);
  CHECK(b.allocator.round_size(8_MiB + 1_B) == 8_MiB + 512_B);
}

TEST_CASE("Small blocks are split down to 512 bytes, large ones above 1 MiB", "[memory]") {
  Bench b;
  b.take(2_MiB - 512_B);  // large pool: 20 MiB segment, rest 18 MiB
  CHECK(b.reserved() == 20_MiB);
  CHECK(b.allocated() == 2_MiB - 512_B);
  Bench exact;
  exact.take(19_MiB + 512_KiB);  // its own 20 MiB segment, 512 KiB left: not split
  CHECK(exact.allocated() == 20_MiB);
  CHECK(exact.allocator.stats().requested.current == 19_MiB + 512_KiB);
  CHECK(exact.allocator.stats().inactive_split.current == 0_B);
  Bench small;
  small.take(1_MiB);
  small.take(1_MiB - 512_B);
  small.take(512_B);
  CHECK(small.reserved() == 2_MiB);
  CHECK(small.allocator.stats().inactive_split.current == 0_B);
}

TEST_CASE("The smallest block that fits is taken, the lowest address among equals", "[memory]") {
  Bench b;
  const BlockId a = b.take(12_MiB), c = b.take(40_MiB), d = b.take(12_MiB);
  const Address low = b.allocator.address(a), high = b.allocator.address(d);
  REQUIRE(low < high);
  b.allocator.free(d);
  b.allocator.free(c);
  b.allocator.free(a);
  CHECK(b.allocator.address(b.take(11_MiB + 512_KiB)) == low);
  CHECK(b.allocator.address(b.take(12_MiB)) == high);
  CHECK(b.reserved() == 64_MiB);
}

TEST_CASE("Freed neighbours merge", "[memory]") {
  Bench b;
  const BlockId a = b.take(4_MiB), c = b.take(4_MiB), d = b.take(4_MiB);
  b.allocator.free(a);
  b.allocator.free(d);
  CHECK(b.allocator.stats().inactive_split.current == 16_MiB);
  b.allocator.free(c);
  CHECK(b.allocator.stats().inactive_split.current == 0_B);
  CHECK(b.allocator.snapshot().size() == 1);
  CHECK(b.allocator.snapshot()[0].blocks.size() == 1);
}

TEST_CASE("A block stays with its stream", "[memory]") {
  Bench b;
  b.allocator.free(b.take(12_MiB, 0));
  b.take(12_MiB, 1);
  CHECK(b.reserved() == 24_MiB);
}

TEST_CASE("max_split_size keeps large blocks whole", "[memory]") {
  Bench b(settings("max_split_size_mb:64"));
  b.allocator.free(b.take(100_MiB));
  b.take(12_MiB);  // may not take the oversize block
  CHECK(b.reserved() == 112_MiB);
  const BlockId close = b.take(81_MiB);  // within 20 MiB of it: taken whole
  CHECK(b.allocator.size(close) == 100_MiB);
  b.allocator.free(close);
  b.take(80_MiB);  // 20 MiB or more smaller: refused
  CHECK(b.reserved() == 192_MiB);
}

TEST_CASE("max_non_split_rounding widens what an oversize request may take", "[memory]") {
  Bench b(settings("max_split_size_mb:64,max_non_split_rounding_mb:40"));
  b.allocator.free(b.take(100_MiB));
  CHECK(b.allocator.size(b.take(64_MiB)) == 100_MiB);
}

TEST_CASE("An oversize block is returned before everything is", "[memory]") {
  Bench b(settings("max_split_size_mb:64"), 200_MiB);
  b.allocator.free(b.take(150_MiB));
  b.allocator.free(b.take(40_MiB));
  const AllocResult result = b.allocator.allocate(100_MiB, 0);  // 150 MiB are too much for it
  CHECK(result.ok);
  CHECK_FALSE(result.retried);
  CHECK(b.reserved() == 140_MiB);  // the 40 MiB block is still cached
  CHECK(b.allocator.stats().num_alloc_retries == 0);
}

TEST_CASE("Garbage collection returns what was not used for long", "[memory]") {
  Bench b(settings("garbage_collection_threshold:0.5"));
  b.allocator.allow(100_MiB);
  b.allocator.free(b.take(30_MiB));
  for (int i = 0; i < 5; ++i) b.allocator.free(b.take(20_MiB + 2_MiB * 0));
  b.take(21_MiB + 10_MiB);  // below the threshold at that moment: nothing is collected
  const Bytes before = b.reserved();
  REQUIRE(before > 50_MiB);
  b.take(36_MiB);  // miss, above the threshold: old free segments go first
  CHECK(b.allocator.stats().num_alloc_retries == 0);
  CHECK(b.reserved() < before + 36_MiB);
}

TEST_CASE("Without a memory fraction the garbage collection threshold does nothing", "[memory]") {
  Bench b(settings("garbage_collection_threshold:0.01"));
  b.allocator.free(b.take(30_MiB));
  b.take(40_MiB);
  CHECK(b.reserved() == 70_MiB);
}

TEST_CASE("The whole cache is returned when the device is full, then the request is repeated",
          "[memory]") {
  Bench b({}, 100_MiB);
  const BlockId kept = b.take(4_MiB);  // its 20 MiB segment is partly used
  b.allocator.free(b.take(60_MiB));
  const AllocResult result = b.allocator.allocate(70_MiB, 0);
  CHECK(result.ok);
  CHECK(result.retried);
  CHECK(result.synchronized);
  CHECK(b.reserved() == 90_MiB);
  CHECK(b.allocator.stats().num_alloc_retries == 1);
  CHECK(b.allocator.stats().num_ooms == 0);
  CHECK(b.device.free() == 10_MiB);

  const AllocResult failed = b.allocator.allocate(12_MiB, 0);  // 16 MiB are free inside, in a block
  CHECK(failed.ok);
  const AllocResult again = b.allocator.allocate(12_MiB, 0);
  CHECK_FALSE(again.ok);
  CHECK(again.segment_size == 12_MiB);
  CHECK(b.allocator.stats().num_ooms == 1);
  CHECK(b.allocator.stats().num_alloc_retries == 2);
  b.allocator.free(kept);
}

TEST_CASE("Memory outside the allocator shrinks what the device gives", "[memory]") {
  Bench b({}, 100_MiB);
  REQUIRE(b.device.take_external(50_MiB + 1_B));
  CHECK_FALSE(b.allocator.allocate(50_MiB, 0).ok);
  CHECK(b.allocator.allocate(48_MiB, 0).ok);
  CHECK_FALSE(b.device.take_external(2_MiB));
}

TEST_CASE("A memory fraction refuses before the driver is asked", "[memory]") {
  Bench b;
  b.allocator.set_memory_fraction(0.25);
  CHECK(b.allocator.allowed() == 256_MiB);
  b.take(200_MiB);
  CHECK_FALSE(b.allocator.allocate(57_MiB, 0).ok);
  CHECK(b.allocator.allocate(56_MiB, 0).ok);
}

TEST_CASE("A recorded block waits, and stays active until it is completed", "[memory]") {
  Bench b;
  const BlockId block = b.take(12_MiB);
  b.allocator.record_stream(block, 0);  // its own stream: no effect
  b.allocator.record_stream(block, 3);
  CHECK_FALSE(b.allocator.free(block));
  CHECK(b.allocated() == 0_B);
  CHECK(b.allocator.stats().active.current == 12_MiB);
  CHECK(b.allocator.stats().requested.current == 12_MiB);
  const BlockId other = b.take(12_MiB);
  CHECK(b.reserved() == 24_MiB);
  b.allocator.complete(block);
  CHECK(b.allocator.stats().active.current == 12_MiB);
  b.take(12_MiB);
  CHECK(b.reserved() == 24_MiB);
  b.allocator.record_stream(other, 0);
  CHECK(b.allocator.free(other));
}

TEST_CASE("Returning the cache completes every waiting block", "[memory]") {
  Bench b({}, 64_MiB);
  const BlockId block = b.take(40_MiB);
  b.allocator.record_stream(block, 1);
  CHECK_FALSE(b.allocator.free(block));
  const AllocResult result = b.allocator.allocate(50_MiB, 0);
  CHECK(result.ok);
  CHECK(result.synchronized);
  CHECK(b.allocator.stats().active.current == 50_MiB);
}

TEST_CASE("empty_cache returns whole free segments of all streams", "[memory]") {
  Bench b;
  b.allocator.free(b.take(12_MiB, 0));
  b.allocator.free(b.take(1_KiB, 1));
  b.take(4_MiB, 0);  // from the 12 MiB segment
  b.allocator.empty_cache();
  CHECK(b.reserved() == 12_MiB);
  CHECK(b.allocator.stats().segments.current == 1);
  CHECK(b.device.used() == 12_MiB);
}

TEST_CASE("Expandable segments map whole pages behind one range", "[memory]") {
  Bench b(settings("expandable_segments:True"));
  const BlockId a = b.take(30_MiB);
  CHECK(b.reserved() == 40_MiB);
  CHECK(b.allocator.stats().segments.current == 0);
  const BlockId c = b.take(30_MiB);  // 10 MiB are left: one page more
  CHECK(b.reserved() == 60_MiB);
  CHECK(b.allocator.address(c) == b.allocator.address(a) + Address{30} * 1048576);
  CHECK(b.allocator.stats().inactive_split.current == 0_B);
  const auto view = b.allocator.snapshot();
  REQUIRE(view.size() == 1);
  CHECK(view[0].expandable);
  CHECK(view[0].size == 60_MiB);
}

TEST_CASE("Pressure unmaps the free pages of expandable segments", "[memory]") {
  Bench b(settings("expandable_segments:True"), 100_MiB);
  const BlockId a = b.take(30_MiB);
  const BlockId c = b.take(30_MiB);
  b.take(10_MiB);
  CHECK(b.reserved() == 80_MiB);
  b.allocator.free(a);
  const AllocResult result = b.allocator.allocate(40_MiB, 0);  // one free page of a is given back
  CHECK(result.ok);
  CHECK(result.retried);
  CHECK(b.reserved() == 100_MiB);
  b.allocator.free(c);
  b.allocator.empty_cache();
  CHECK(b.device.used() == b.reserved());
}

TEST_CASE("A failed mapping leaves what was mapped before it", "[memory]") {
  Bench b(settings("expandable_segments:True"), 70_MiB);
  b.take(30_MiB);
  CHECK_FALSE(b.allocator.allocate(60_MiB, 0).ok);
  CHECK(b.reserved() == 40_MiB);
  CHECK(b.allocator.allocate(30_MiB, 0).ok);
}

TEST_CASE("Peaks start anew from the current value", "[memory]") {
  Bench b;
  b.allocator.free(b.take(30_MiB));
  CHECK(b.allocator.stats().allocated.peak == 30_MiB);
  b.allocator.reset_peaks();
  CHECK(b.allocator.stats().allocated.peak == 0_B);
  CHECK(b.allocator.stats().reserved.peak == 30_MiB);
}
