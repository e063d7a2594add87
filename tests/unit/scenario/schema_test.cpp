// The JSON Schemas of tools/schema say the same as the readers: they accept what is shipped, refuse
// what the readers refuse for its structure, and know the same keys.
// GCC 12 takes a string replacement inlined from valijson for an overlapping copy (GCC bug 105651).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wrestrict"
#endif

#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "sim/scenario/config_reader.h"
#include "sim/scenario/scenario.h"
#include "tests/support/catch.h"

using namespace sim;
using nlohmann::json;

namespace {

const std::string kRoot = SIM_SOURCE_DIR "/";

json load_schema(const std::string& name) {
  std::ifstream in(kRoot + "tools/schema/" + name + ".schema.json");
  return json::parse(in);
}

// Scalars as an editor's YAML support sees them.
json scalar_to_json(const ConfigNode& node) {
  const std::string& text = node.text;
  if (node.quoted) return text;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  std::int64_t whole = 0;
  double real = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end) return whole;
  if (std::from_chars(text.data(), end, real).ptr == end) return real;
  return text;
}

json to_json(const ConfigNode& node) {
  if (node.is_null()) return nullptr;
  if (node.is_scalar()) return scalar_to_json(node);
  json out = node.is_map() ? json::object() : json::array();
  for (const ConfigNode& item : node.items) out.push_back(to_json(item));
  for (const ConfigNode::Entry& entry : node.entries) out[entry.key] = to_json(entry.value);
  return out;
}

std::optional<ConfigNode> parse(const std::string& path) {
  Diagnostics d;
  const auto file = read_source_file(path, {}, d);
  return file ? parse_config(file, d) : std::nullopt;
}

bool is_valid(const json& document, const json& schema_text) {
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_text), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

// The keys that a schema lists, dotted.
void collect_keys(const json& schema, const std::string& prefix, std::set<std::string>& keys) {
  if (!schema.contains("properties")) return;
  for (const auto& [key, below] : schema["properties"].items()) {
    keys.insert(prefix + key);
    collect_keys(below, prefix + key + ".", keys);
  }
}

std::set<std::string> schema_keys(const std::string& name) {
  std::set<std::string> keys;
  collect_keys(load_schema(name), "", keys);
  return keys;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  return paths;
}

DataRoots roots() { return {kRoot + "models", kRoot + "hardware"}; }

}  // namespace

TEST_CASE("every shipped file reads and is valid against its schema", "[scenario]") {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"scenarios", "scenario"}, {"hardware/gpus", "gpu"}, {"hardware/nodes", "node"}};
  for (const auto& [folder, name] : kinds) {
    const json schema = load_schema(name);
    for (const std::string& path : files_in(folder)) {
      INFO(path);
      const auto node = parse(path);
      REQUIRE(node);
      CHECK(is_valid(to_json(*node), schema));
    }
  }
  Diagnostics d;
  for (const std::string& path : files_in("scenarios")) read_scenario(path, roots(), {}, d);
  for (const std::string& name : gpu_names(roots().hardware))
    read_gpu({name, {}}, roots().hardware, d);
  for (const std::string& name : node_names(roots().hardware)) {
    const auto node = read_node({name, {}}, roots().hardware, d);
    REQUIRE(node);
    CHECK(read_gpu(node->gpu, roots().hardware, d));
  }
  INFO(render(d));
  CHECK(d.all().empty());
}

TEST_CASE("the scenario's schema and reader know the same keys", "[scenario]") {
  const std::string path = kRoot + "tests/unit/scenario/every_key.yaml";
  Diagnostics d;
  std::set<std::string> keys;
  const auto scenario = read_scenario(read_source_file(path, {}, d), roots(), {}, d, &keys);
  INFO(render(d));
  REQUIRE(scenario);
  CHECK(is_valid(to_json(*parse(path)), load_schema("scenario")));
  CHECK(keys == schema_keys("scenario"));
}

TEST_CASE("the hardware schemas and readers know the same keys", "[scenario]") {
  Diagnostics d;
  std::set<std::string> gpu_keys, node_keys;
  ReadContext gpu{d, nullptr, &gpu_keys};
  ReadContext node{d, nullptr, &node_keys};
  read_gpu(read_source_file(kRoot + "hardware/gpus/a100-sxm4-40gb.yaml", {}, d), gpu);
  read_node(read_source_file(kRoot + "hardware/nodes/dgx-a100-40gb.yaml", {}, d), node);
  CHECK(gpu_keys == schema_keys("gpu"));
  CHECK(node_keys == schema_keys("node"));
}

TEST_CASE("what the reader refuses for its structure is invalid for the schema, too",
          "[scenario]") {
  const json schema = load_schema("scenario");
  int structural = 0;
  for (const std::string& path : files_in("tests/diagnostics")) {
    std::ifstream in(path);
    std::string first_line;
    std::getline(in, first_line);
    if (first_line.find("(structure)") == std::string::npos) continue;
    INFO(path);
    const auto node = parse(path);
    REQUIRE(node);
    CHECK_FALSE(is_valid(to_json(*node), schema));
    ++structural;
  }
  CHECK(structural >= 10);
}
