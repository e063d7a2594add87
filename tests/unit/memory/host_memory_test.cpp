#include "sim/memory/host_memory.h"

#include "tests/support/catch.h"

using namespace sim;
using namespace sim::memory;

TEST_CASE("File-backed pages give way, others do not", "[memory]") {
  HostMemory host(100_GiB);
  host.allocate(0, HostMemoryKind::file_backed, 300_GiB);
  CHECK_FALSE(host.victim());
  CHECK(host.resident_file_backed() == 100_GiB);
  host.allocate(0, HostMemoryKind::anonymous, 60_GiB);
  host.allocate(1, HostMemoryKind::pinned, 40_GiB);
  CHECK_FALSE(host.victim());
  CHECK(host.resident_file_backed() == 0_B);
  host.allocate(1, HostMemoryKind::anonymous, 1_B);
  CHECK(host.victim() == 0);
}

TEST_CASE("The largest process is killed, and its memory comes back", "[memory]") {
  HostMemory host(100_GiB);
  for (int process = 0; process < 4; ++process) {
    host.allocate(process, HostMemoryKind::anonymous, process == 2 ? 30_GiB : 25_GiB);
  }
  REQUIRE(host.victim() == 2);
  host.free(2, HostMemoryKind::anonymous, 30_GiB);
  CHECK_FALSE(host.victim());
  CHECK(host.use().anonymous == 75_GiB);
  CHECK(host.use(2).anonymous == 0_B);
  host.free(3, HostMemoryKind::anonymous, 5_GiB);
  CHECK(host.use(3).anonymous == 20_GiB);
}
