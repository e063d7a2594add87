#include "sim/memory/allocator_profile.h"

#include <string>

#include "tests/support/catch.h"

using namespace sim;
using namespace sim::memory;
using Catch::Matchers::Contains;

namespace {

const AllocatorProfile& release(const std::string& name) {
  Diagnostics diagnostics;
  const AllocatorProfile* profile = find_allocator_profile({name, {}}, diagnostics);
  REQUIRE(profile != nullptr);
  return *profile;
}

// Everything that parsing `conf` complains of.
std::string complaints(const std::string& conf, const std::string& torch = "2.11.0") {
  Diagnostics diagnostics;
  CHECK_FALSE(parse_allocator_settings({conf, {}}, release(torch), diagnostics));
  return render(diagnostics);
}

}  // namespace

TEST_CASE("A release belongs to the newest family that is not newer", "[memory]") {
  CHECK(release("1.13.1").since == "1.13");
  CHECK(release("2.0.1").since == "2.0");
  CHECK(release("2.3.0").since == "2.2");
  CHECK(release("2.10.0+cu126").since == "2.9");
  CHECK(release("2.11.0+cu130").since == "2.11");
  CHECK(release("2.1.0a0").since == "2.1");
  CHECK(release("3.0").since == newest_allocator_profile().since);
}

TEST_CASE("What is no release, or too old a one, is refused", "[memory]") {
  for (const char* name : {"", "two", "2", "2.x", "1.12.1", "2.1x"}) {
    CAPTURE(name);
    Diagnostics diagnostics;
    CHECK(find_allocator_profile({name, {}}, diagnostics) == nullptr);
    CHECK(diagnostics.error_count() == 1);
  }
}

TEST_CASE("Settings read as PyTorch reads them", "[memory]") {
  Diagnostics diagnostics;
  const auto settings = parse_allocator_settings(
      {"max_split_size_mb:64, garbage_collection_threshold:0.6,expandable_segments=True,"
       "roundup_power2_divisions=[256:1,512:2,>:8],backend:native,"
       "pinned_use_background_threads:True,large_segment_size_mb:30",
       {}},
      release("2.11"), diagnostics);
  REQUIRE(settings);
  CHECK(settings->max_split_size == 64_MiB);
  CHECK(settings->garbage_collection_threshold == 0.6);
  CHECK(settings->expandable_segments);
  CHECK(settings->large_segment_size == 30_MiB);
  CHECK(settings->roundup_power2_divisions[0] == 1);
  CHECK(settings->roundup_power2_divisions[8] == 1);
  CHECK(settings->roundup_power2_divisions[9] == 2);
  CHECK(settings->roundup_power2_divisions[10] == 8);
  Diagnostics again;
  CHECK(parse_allocator_settings({to_text(*settings), {}}, release("2.11"), again) == settings);
}

TEST_CASE("The empty string is the default", "[memory]") {
  Diagnostics diagnostics;
  CHECK(parse_allocator_settings({"", {}}, release("2.0"), diagnostics) == AllocatorSettings{});
  CHECK(to_text(AllocatorSettings{}).empty());
}

TEST_CASE("Settings add to a base", "[memory]") {
  AllocatorSettings base;
  base.max_split_size = 100_MiB;
  Diagnostics diagnostics;
  const auto settings =
      parse_allocator_settings({"expandable_segments:True", {}}, release("2.6"), diagnostics, base);
  REQUIRE(settings);
  CHECK(settings->max_split_size == 100_MiB);
}

TEST_CASE("Wrong settings are named", "[memory]") {
  CHECK_THAT(complaints("max_split_size:64"), Contains("did you mean 'max_split_size_mb'?"));
  CHECK_THAT(complaints("max_split_size_mb:19"), Contains("at least 20"));
  CHECK_THAT(complaints("max_split_size_mb:20", "2.0.1"), Contains("more than 20"));
  CHECK_THAT(complaints("max_split_size_mb:many"), Contains("'many' is no whole number"));
  CHECK_THAT(complaints("max_split_size_mb"), Contains("has no value"));
  CHECK_THAT(complaints("max_split_size_mb:"), Contains("has no value"));
  CHECK_THAT(complaints("garbage_collection_threshold:1.0"), Contains("between 0 and 1"));
  CHECK_THAT(complaints("expandable_segments:true"), Contains("True or False"));
  CHECK_THAT(complaints("expandable_segments:True", "2.0.1"), Contains("it came with 2.1"));
  CHECK_THAT(complaints("roundup_bypass_threshold_mb:64", "2.0.1"), Contains("it went with 2.0"));
  CHECK_THAT(complaints("roundup_power2_divisions:3"), Contains("power of 2"));
  CHECK_THAT(complaints("roundup_power2_divisions:[3:2]"), Contains("power of 2"));
  CHECK_THAT(complaints("roundup_power2_divisions:[4:2"), Contains("closing ']'"));
  CHECK_THAT(complaints("roundup_power2_divisions:[4:2]", "1.13"), Contains("no list"));
  CHECK_THAT(complaints("backend:cudaMallocAsync"), Contains("not modelled"));
  CHECK_THAT(complaints("large_segment_size_mb:10"), Contains("more than 10"));
}

TEST_CASE("All mistakes show in one run", "[memory]") {
  Diagnostics diagnostics;
  CHECK_FALSE(
      parse_allocator_settings({"a:1,max_split_size_mb:x,b:2", {}}, release("2.6"), diagnostics));
  CHECK(diagnostics.error_count() == 3);
}
