// Every recording of PyTorch's allocator that we hold must come out of the emulator to the byte.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/study/replay.h"
#include "sim/timeline/read_allocator_log.h"
#include "tests/support/catch.h"

using namespace sim;
using sim::study::ReplayOptions;
using sim::study::ReplayResult;

namespace {

const std::filesystem::path kData = std::filesystem::path(SIM_SOURCE_DIR) / "tests/data";

std::vector<std::string> recordings(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".jsonl.gz") || path.ends_with(".events.csv.gz")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

AllocatorLog read(const std::string& path) {
  Diagnostics diagnostics;
  auto log = read_allocator_log(path, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(log);
  return *log;
}

ReplayResult replay(const AllocatorLog& log, const ReplayOptions& options = {}) {
  Diagnostics diagnostics;
  auto result = study::replay(log, options, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(result);
  return *result;
}

// The largest of the values that follow `key` in a settings file: torch.cuda.memory_stats() of the
// run, by phase.
Bytes largest(const std::string& path, const std::string& key) {
  std::ifstream in(path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Bytes most{};
  for (auto at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    most = std::max(most, Bytes{std::stoll(text.substr(at + key.size()))});
  }
  return most;
}

void agree(const std::string& path) {
  CAPTURE(path);
  const AllocatorLog log = read(path);
  const ReplayResult result = replay(log);
  INFO(to_text(result));
  CHECK(result.differences == 0);
  CHECK(result.operations ==
        static_cast<std::int64_t>(log.is_corpus ? log.calls.size() : log.events.size()));
}

}  // namespace

TEST_CASE("Corpora of random requests agree to the byte", "[replay]") {
  const auto paths = recordings(kData / "allocator");
  CHECK(paths.size() >= 24);
  for (const std::string& path : paths) agree(path);
}

TEST_CASE("Training runs agree to the byte", "[replay]") {
  const auto paths = recordings(kData / "h200");
  CHECK(paths.size() == 12);
  for (const std::string& path : paths) agree(path);
}

TEST_CASE("A corpus with one wrong counter is caught at its line", "[replay]") {
  AllocatorLog log = read((kData / "allocator/alloc-default.jsonl.gz").string());
  log.calls[1234].after.reserved += 2_MiB;
  const ReplayResult result = replay(log);
  CHECK(result.differences == 1);
  REQUIRE(result.first_difference);
  CHECK(result.first_difference->operation == 1234);
  CHECK(result.first_difference->what == "reserved");
}

TEST_CASE("A corpus with one wrong address is caught", "[replay]") {
  AllocatorLog log = read((kData / "allocator/alloc-default.jsonl.gz").string());
  std::size_t changed = 700;
  while (log.events[changed].action != AllocatorAction::alloc) ++changed;
  log.events[changed].address += 512;
  const ReplayResult result = replay(log);
  REQUIRE(result.differences > 0);
  CHECK(result.first_difference->what == "address");
}

TEST_CASE("A corpus with one wrong letter in a message is caught", "[replay]") {
  AllocatorLog log = read((kData / "allocator/alloc-default.jsonl.gz").string());
  for (AllocatorCall& call : log.calls) {
    if (call.message.empty()) continue;
    call.message[10] = 'X';
    break;
  }
  const ReplayResult result = replay(log);
  CHECK(result.differences == 1);
  CHECK(result.first_difference->what == "message");
}

TEST_CASE("A training run with one other segment is caught", "[replay]") {
  const std::string path = (kData / "h200/full7b-bf16-ckpt-cap80-oom.rank0.events.csv.gz").string();
  const AllocatorLog log = read(path);
  const auto is_segment = [](const AllocatorEvent& event) {
    return event.action == AllocatorAction::segment_alloc;
  };
  const auto at = static_cast<std::size_t>(
      std::find_if(log.events.begin() + 2000, log.events.end(), is_segment) - log.events.begin());
  SECTION("of another size") {
    AllocatorLog changed = log;
    changed.events[at].size += 2_MiB;
    CHECK(replay(changed).differences > 0);
  }
  SECTION("missing") {
    AllocatorLog changed = log;
    changed.events.erase(changed.events.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK(replay(changed).differences > 0);
  }
  SECTION("freed one event later") {
    AllocatorLog changed = log;
    const auto is_free = [](const AllocatorEvent& event) {
      return event.action == AllocatorAction::segment_free;
    };
    const auto freed = std::find_if(changed.events.begin(), changed.events.end(), is_free);
    REQUIRE(freed != changed.events.end());
    std::rotate(freed, freed + 1, freed + 40);
    CHECK(replay(changed).differences > 0);
  }
  SECTION("under a cap that is 2 GiB lower") {
    AllocatorLog changed = log;
    *changed.cap -= 2_GiB;
    CHECK(replay(changed).differences > 0);
  }
}

TEST_CASE("Peaks are those that PyTorch reported", "[replay]") {
  for (const std::string& path : recordings(kData / "h200")) {
    CAPTURE(path);
    const std::string settings =
        path.substr(0, path.size() - std::string(".events.csv.gz").size()) + ".json";
    const ReplayResult result = replay(read(path));
    CHECK(result.peak_allocated == largest(settings, "\"allocated_peak\": "));
    CHECK(result.peak_reserved == largest(settings, "\"reserved_peak\": "));
  }
}

TEST_CASE("What if the allocator had had other settings", "[replay]") {
  const AllocatorLog log =
      read((kData / "h200/full7b-bf16-ckpt-cap80-oom.rank0.events.csv.gz").string());
  ReplayOptions same;
  same.set = Named{"garbage_collection_threshold:0.99", {}};
  CHECK(replay(log, same).what_if);

  ReplayOptions roomy;
  roomy.capacity = 120_GiB;
  const ReplayResult fits = replay(log, roomy);
  CHECK(fits.what_if);
  CHECK(fits.ooms == 0);
  CHECK_FALSE(fits.first_difference);
  CHECK_THAT(to_text(fits), Catch::Matchers::Contains("the run would have fitted"));

  ReplayOptions tight;
  tight.capacity = 40_GiB;
  const ReplayResult dies = replay(log, tight);
  CHECK(dies.ooms > 0);
  REQUIRE_FALSE(dies.first_ooms.empty());
  CHECK_THAT(dies.first_ooms[0].message, Catch::Matchers::StartsWith("CUDA out of memory."));
  CHECK(dies.peak_reserved <= 40_GiB);
}

TEST_CASE("Unknown options of a what-if are refused", "[replay]") {
  const AllocatorLog log = read((kData / "allocator/alloc-default.jsonl.gz").string());
  ReplayOptions options;
  options.set = Named{"max_split:64", {}};
  Diagnostics diagnostics;
  CHECK_FALSE(study::replay(log, options, diagnostics));
  CHECK(diagnostics.error_count() == 1);
}
