#include "sim/program/hooks/pinned_memory.h"

#include "tests/support/catch.h"

namespace sim::program {
namespace {

TEST_CASE("page-locked blocks are powers of two and come back from the cache") {
  CHECK(PinnedMemory::block_size(Bytes{1}) == Bytes{1});
  CHECK(PinnedMemory::block_size(Bytes{4096}) == Bytes{4096});
  CHECK(PinnedMemory::block_size(Bytes{4097}) == Bytes{8192});
  Builder b;
  PinnedMemory memory;
  const ScopeId scope = b.scope("");
  const LabelId label = b.label("x");
  const HostBufferId first = memory.allocate(b, Bytes{5000}, scope, label);
  const HostBufferId second = memory.allocate(b, Bytes{5000}, scope, label);
  CHECK(first != second);
  memory.free(first);
  // Another size does not split it; its own size takes it.
  CHECK(memory.allocate(b, Bytes{3000}, scope, label) != first);
  CHECK(memory.allocate(b, Bytes{8192}, scope, label) == first);
  CHECK(b.finish().host_buffers.size() == 3);
}

}  // namespace
}  // namespace sim::program
