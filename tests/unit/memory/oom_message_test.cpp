#include "sim/memory/oom_message.h"

#include <string>

#include "tests/support/catch.h"

using namespace sim;
using namespace sim::memory;

namespace {

std::string message(const std::string& torch, const OomFigures& figures) {
  Diagnostics diagnostics;
  const AllocatorProfile* profile = find_allocator_profile({torch, {}}, diagnostics);
  REQUIRE(profile != nullptr);
  return oom_message(*profile, figures);
}

OomFigures figures() {
  OomFigures f;
  f.tried = 2160_MiB;
  f.gpu = 6;
  f.total = Bytes{84'986'691'584};
  f.free = Bytes{75'694'080};
  f.allocated = 77_GiB;
  f.reserved = 78_GiB;
  return f;
}

}  // namespace

TEST_CASE("Sizes print as c10 prints them", "[memory]") {
  CHECK(format_size(0_B) == "0 bytes");
  CHECK(format_size(1024_B) == "1024 bytes");
  CHECK(format_size(1025_B) == "1.00 KiB");
  CHECK(format_size(1_MiB) == "1024.00 KiB");
  CHECK(format_size(20_MiB) == "20.00 MiB");
  CHECK(format_size(1_GiB) == "1024.00 MiB");
  CHECK(format_size(1_GiB + 1_B) == "1.00 GiB");
  CHECK(format_size(2160_MiB) == "2.11 GiB");
}

TEST_CASE("1.13 and 2.0 say it in one line", "[memory]") {
  const std::string text =
      "CUDA out of memory. Tried to allocate 2.11 GiB (GPU 6; 79.15 GiB total capacity; 77.00 GiB "
      "already allocated; 72.19 MiB free; 78.00 GiB reserved in total by PyTorch) If reserved "
      "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See "
      "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
  CHECK(message("1.13.1", figures()) == text);
  CHECK(message("2.0.1", figures()) == text);
  OomFigures limited = figures();
  limited.allowed = 60_GiB;
  CHECK_THAT(message("2.0.1", limited),
             Catch::Matchers::Contains("72.19 MiB free; 60.00 GiB allowed; 78.00 GiB reserved"));
}

TEST_CASE("2.1 misspells capacity and lists processes", "[memory]") {
  OomFigures f = figures();
  f.gpu = 0;
  f.processes = {{4711, 1_GiB + 512_MiB, false}, {1, 78_GiB + 512_MiB, true}};
  CHECK(
      message("2.1.2", f) ==
      "CUDA out of memory. Tried to allocate 2.11 GiB. GPU 0 has a total capacty of 79.15 GiB of "
      "which 72.19 MiB is free. Process 4711 has 1.50 GiB memory in use. Including non-PyTorch "
      "memory, this process has 78.50 GiB memory in use. Of the allocated memory 77.00 GiB is "
      "allocated by PyTorch, and 1024.00 MiB is reserved by PyTorch but unallocated. If reserved "
      "but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See "
      "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF");
}

TEST_CASE("Later releases advise expandable segments", "[memory]") {
  OomFigures f = figures();
  f.allowed = 60_GiB;
  const std::string head =
      "CUDA out of memory. Tried to allocate 2.11 GiB. GPU 6 has a total capacity of 79.15 GiB of "
      "which 72.19 MiB is free. ";
  const std::string body =
      "Of the allocated memory 77.00 GiB is allocated by PyTorch, and 1024.00 MiB is reserved by "
      "PyTorch but unallocated. If reserved but unallocated memory is large try setting ";
  const std::string tail =
      "=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
      "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
  CHECK(message("2.3.1", f) == head + body + "PYTORCH_CUDA_ALLOC_CONF" + tail);
  CHECK(message("2.6.0", f) ==
        head + "60.00 GiB allowed; " + body + "PYTORCH_CUDA_ALLOC_CONF" + tail);
  CHECK(message("2.10.0", f) == head + "60.00 GiB allowed; " + body + "PYTORCH_ALLOC_CONF" + tail);
  CHECK_THAT(message("2.11.0", f),
             Catch::Matchers::EndsWith(
                 "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
                 "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
                 "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"));
}
