// Any bytes as an allocator recording: the reader complains or reads, and what it read replays.
// Corpus: tests/data/allocator/short
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/study/replay.h"
#include "sim/timeline/read_allocator_log.h"

namespace {

void replay_both_ways(const sim::AllocatorLog& log) {
  sim::Diagnostics diagnostics;
  sim::study::replay(log, {}, diagnostics);
  sim::study::ReplayOptions options;
  options.capacity = sim::Bytes{std::int64_t{1} << 30};
  sim::study::replay(log, options, diagnostics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::make_shared<sim::SourceFile>(
      sim::SourceFile{"input", std::string(reinterpret_cast<const char*>(data), size)});
  sim::Diagnostics diagnostics;
  if (const auto log = sim::read_allocator_corpus(file, diagnostics)) replay_both_ways(*log);
  if (const auto log = sim::read_allocator_events(file, nullptr, diagnostics)) {
    replay_both_ways(*log);
  }
  [[maybe_unused]] const std::string text = render(diagnostics);
  return 0;
}
