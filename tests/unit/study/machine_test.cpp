#include "sim/study/run.h"
#include "tests/support/catch.h"

namespace sim::study {
namespace {

using namespace sim::literals;

std::optional<engine::Machine> machine(const std::vector<Override>& overrides,
                                       Diagnostics& diagnostics) {
  const std::string root = SIM_SOURCE_DIR;
  const auto scenario =
      read_scenario(root + "/tests/golden/tiny-fits/scenario.yaml",
                    {root + "/models", root + "/hardware"}, overrides, diagnostics);
  INFO(render(diagnostics));
  REQUIRE(scenario);
  Assumptions assumptions;
  const auto software = program::resolve_software(*scenario, assumptions, diagnostics);
  return make_machine(*scenario, software, diagnostics);
}

TEST_CASE("the machine takes cards, release and limits from the scenario", "[study]") {
  Diagnostics diagnostics;
  const auto plain = machine({}, diagnostics);
  REQUIRE(plain);
  CHECK(plain->gpu.total == plain->cluster.gpu.total_memory);
  CHECK(plain->host.capacity == plain->cluster.host_memory);
  CHECK(plain->allocator.minor == 0);
  CHECK_FALSE(plain->allowed);
  REQUIRE(plain->place_of.size() == 2);
  CHECK(plain->place_of[RankId{1}] == network::Place{0, 4});
}

TEST_CASE("what a report printed and what the job may use lie over the data sheet", "[study]") {
  Diagnostics diagnostics;
  const auto observed = machine({{"observed.total", "10 GiB"},
                                 {"allocator.memory_fraction", "0.5"},
                                 {"allocator.conf", "max_split_size_mb:64"}},
                                diagnostics);
  REQUIRE(observed);
  CHECK(observed->gpu.total == 10_GiB);
  CHECK(observed->allowed == 5_GiB);
  CHECK(observed->allocator_settings.max_split_size == 64_MiB);
  const auto capped = machine({{"allocator.cap", "1 GiB"}}, diagnostics);
  REQUIRE(capped);
  CHECK(capped->allowed == 1_GiB);
}

TEST_CASE("a release whose allocator is unknown is an error", "[study]") {
  Diagnostics diagnostics;
  CHECK_FALSE(machine({{"software.torch", "1.4.0"}}, diagnostics));
  CHECK(diagnostics.has_errors());
}

}  // namespace
}  // namespace sim::study
