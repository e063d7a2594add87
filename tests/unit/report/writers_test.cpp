#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/report/writers/writer.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/unit/report/samples.h"

namespace sim::report {
namespace {

using Json = nlohmann::json;

// What a key of the contract may hold: i integer, n number, s string, l list, o object; a following
// ? allows null.
void require_keys(const Json& json, const std::vector<std::pair<const char*, const char*>>& keys) {
  for (const auto& [key, type] : keys) {
    INFO(key << " in " << json.dump().substr(0, 200));
    REQUIRE(json.contains(key));
    const Json& value = json.at(key);
    if (value.is_null()) {
      CHECK(type[1] == '?');
      continue;
    }
    switch (type[0]) {
      case 'i':
        CHECK(value.is_number_integer());
        break;
      case 'n':
        CHECK(value.is_number());
        break;
      case 's':
        CHECK(value.is_string());
        break;
      case 'l':
        CHECK(value.is_array());
        break;
      default:
        CHECK(value.is_object());
    }
  }
}

void require_contract(const Json& json) {
  require_keys(json, {{"schema", "s"},
                      {"scenario", "s"},
                      {"software", "o"},
                      {"verdict", "o"},
                      {"placement", "l"},
                      {"idle_gpus", "l"},
                      {"processes", "l"},
                      {"ranks", "l"},
                      {"hosts", "l"},
                      {"step", "o?"},
                      {"warnings", "l"},
                      {"assumptions", "l"}});
  CHECK(json["schema"] == "rehearse.report/1");
  require_keys(json["verdict"], {{"kind", "s"},
                                 {"rank", "i?"},
                                 {"local_rank", "i?"},
                                 {"host", "i?"},
                                 {"phase", "s?"},
                                 {"scope", "s?"},
                                 {"message", "s?"},
                                 {"requested_bytes", "i?"},
                                 {"tried_to_allocate_bytes", "i?"},
                                 {"allocated_bytes", "i?"},
                                 {"reserved_bytes", "i?"},
                                 {"free_bytes", "i?"},
                                 {"total_bytes", "i?"},
                                 {"hang", "o?"}});
  if (!json["verdict"]["hang"].is_null()) {
    require_keys(json["verdict"]["hang"], {{"waiting_ranks", "l"},
                                           {"collective", "s"},
                                           {"scope", "s"},
                                           {"missing_ranks", "l"},
                                           {"missing_is_doing", "s"},
                                           {"watchdog_seconds", "n"}});
  }
  for (const Json& line : json["placement"]) {
    require_keys(line, {{"rank", "i"}, {"host", "i"}, {"local_rank", "i"}, {"physical_gpu", "i"}});
  }
  for (const Json& idle : json["idle_gpus"]) {
    require_keys(idle, {{"host", "i"}, {"physical_gpu", "i"}});
  }
  for (const Json& exit : json["processes"]) {
    require_keys(exit, {{"rank", "i"}, {"exit_code", "i"}, {"signal", "s?"}});
  }
  for (const Json& assumption : json["assumptions"]) {
    require_keys(assumption, {{"key", "s"}, {"value", "s"}, {"why", "s"}});
  }
}

void require_rank_contract(const Json& json) {
  for (const Json& rank : json["ranks"]) {
    require_keys(rank, {{"rank", "i"}, {"same_as", "l"}, {"phases", "l"}});
    for (const Json& phase : rank["phases"]) {
      require_keys(phase, {{"name", "s"},
                           {"begin_seconds", "n"},
                           {"end_seconds", "n"},
                           {"peak_allocated_bytes", "i"},
                           {"peak_reserved_bytes", "i"},
                           {"end_allocated_bytes", "i"},
                           {"end_reserved_bytes", "i"},
                           {"peak_device_used_bytes", "i"},
                           {"peak_by_class", "o"},
                           {"host_anonymous_bytes", "i"},
                           {"host_pinned_bytes", "i"},
                           {"warnings", "i"},
                           {"alloc_retries", "i"}});
      require_keys(phase["peak_by_class"], {{"parameters", "i"},
                                            {"gradients", "i"},
                                            {"optimizer_states", "i"},
                                            {"activations", "i"},
                                            {"buffers", "i"},
                                            {"workspace", "i"},
                                            {"temporaries", "i"}});
    }
  }
}

void require_rest_of_contract(const Json& json) {
  for (const Json& host : json["hosts"]) {
    require_keys(host, {{"host", "i"},
                        {"capacity_bytes", "i"},
                        {"peak_anonymous_bytes", "i"},
                        {"peak_pinned_bytes", "i"},
                        {"peak_file_backed_bytes", "i"},
                        {"phases", "l"}});
    for (const Json& phase : host["phases"]) {
      require_keys(phase, {{"name", "s"},
                           {"peak_anonymous_bytes", "i"},
                           {"peak_pinned_bytes", "i"},
                           {"peak_file_backed_bytes", "i"},
                           {"begin_anonymous_bytes", "i"}});
    }
  }
  for (const Json& warning : json["warnings"]) {
    require_keys(warning, {{"rank", "i"},
                           {"phase", "s"},
                           {"scope", "s"},
                           {"text", "s"},
                           {"count", "i"},
                           {"tried_to_allocate_bytes", "i"},
                           {"allocated_bytes", "i"},
                           {"reserved_bytes", "i"},
                           {"free_bytes", "i"}});
  }
  if (json["step"].is_null()) return;
  require_keys(json["step"], {{"seconds", "n"},
                              {"seconds_low", "n?"},
                              {"seconds_high", "n?"},
                              {"forward_seconds", "n?"},
                              {"backward_seconds", "n?"},
                              {"optimizer_seconds", "n?"},
                              {"exposed_communication_seconds", "n?"},
                              {"bubble_seconds", "n?"},
                              {"tokens_per_second", "n"},
                              {"model_tflops_per_gpu", "n"},
                              {"mfu", "n?"}});
}

TEST_CASE("the JSON keeps its contract for every verdict", "[report]") {
  for (const auto& [kind, sample] : samples::all()) {
    INFO(kind);
    const Json json = Json::parse(kJson.write(sample.report(), {}));
    require_contract(json);
    require_rank_contract(json);
    require_rest_of_contract(json);
    CHECK(json["verdict"]["kind"] == kind);
    CHECK(json["verdict"]["hang"].is_null() == (kind != "hang"));
  }
}

TEST_CASE("figures of the JSON are those of the verdict", "[report]") {
  const Json json = Json::parse(kJson.write(samples::out_of_gpu_memory().report(), {}));
  const Json& verdict = json["verdict"];
  CHECK(verdict["rank"] == 0);
  CHECK(verdict["tried_to_allocate_bytes"] == std::int64_t{1} << 30);
  CHECK(verdict["total_bytes"] == std::int64_t{8} << 30);
  CHECK(json["ranks"][0]["same_as"] == Json({1, 2, 3}));
  CHECK(json["software"]["torch"] == "2.0.1");
  CHECK(json["step"].is_null());
}

TEST_CASE("the text says what happened, verdict first", "[report]") {
  for (const auto& [kind, sample] : samples::all()) {
    testing::require_golden("tests/unit/report/expected/" + kind + ".txt",
                            kText.write(sample.report(), {}));
  }
}

TEST_CASE("text stays within 100 columns and is coloured on request only", "[report]") {
  for (const auto& [kind, sample] : samples::all()) {
    const std::string plain = kText.write(sample.report(), {});
    CHECK(plain.find('\x1b') == std::string::npos);
    CHECK(kText.write(sample.report(), {true}).find("\x1b[1;") != std::string::npos);
    std::istringstream lines(plain);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 100);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("thousands of hosts that are alike are a few lines", "[report]") {
  samples::Sample many = samples::fits();
  many.scenario = samples::scenario(4096, 2);
  HostRecord host = many.timeline.hosts.front();
  many.timeline.hosts.clear();
  for (std::uint32_t i = 0; i < 4096; ++i) {
    host.host = HostId{i};
    many.timeline.hosts.push_back(host);
  }
  const std::string text = kText.write(many.report(), {});
  CHECK(text.size() < 4096);
  CHECK(text.find("0-4095") != std::string::npos);
}

TEST_CASE("a later rank class shows only what differs", "[report]") {
  samples::Sample sample = samples::hangs();
  sample.timeline.ranks.back().phases.front().peak_allocated += 1_GiB;
  const std::string text = kText.write(sample.report(), {});
  CHECK(text.find("ranks 1-3: as rank 0, but for") != std::string::npos);
  CHECK(text.find("  step0.forward") == text.rfind("  step0.forward"));
}

TEST_CASE("writers are listed", "[report]") {
  CHECK(writer_catalog().find("text") == &kText);
  CHECK(writer_catalog().find("json") == &kJson);
}

}  // namespace
}  // namespace sim::report
