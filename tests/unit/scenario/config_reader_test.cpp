#include "sim/scenario/config_reader.h"

#include "tests/support/catch.h"

using namespace sim;

namespace {

// A map to read from, and what came of it.
struct Reading {
  explicit Reading(std::string text) {
    auto file = std::make_shared<SourceFile>(SourceFile{"a.yaml", std::move(text)});
    node = parse_config(std::move(file), diagnostics).value();
  }
  ConfigReader reader() { return ConfigReader(node, "job", context); }
  std::string message() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().message;
  }
  std::string hint() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().hint;
  }

  Diagnostics diagnostics;
  Assumptions assumptions;
  std::set<std::string> keys;
  ConfigNode node;
  ReadContext context{diagnostics, &assumptions, &keys};
};

}  // namespace

TEST_CASE("whole numbers are strict, and the hint says what to write", "[scenario]") {
  const auto hint = [](const std::string& text) {
    Reading r("n: " + text);
    CHECK_FALSE(r.reader().find<std::int64_t>("n"));
    return r.hint();
  };
  CHECK(hint("1e9") == "write 1000000000");
  CHECK(hint("3.0") == "write 3");
  CHECK(hint("010") == "a leading zero means octal to some readers; write 10");
  CHECK(hint("\"4\"") == "a quoted number is a string; remove the quotes");
  for (const char* text :
       {"1.5", "0x10", "1_000", "+1", "many", "[1]", "{a: 1}", "99999999999999999999"}) {
    CHECK(hint(text).empty());
  }
  Reading good("{a: 0, b: -7, c: 9223372036854775807}");
  ConfigReader reader = good.reader();
  CHECK(reader.find<std::int64_t>("a")->value == 0);
  CHECK(reader.find<std::int64_t>("b")->value == -7);
  CHECK(reader.find<std::int64_t>("c")->value == INT64_MAX);
}

TEST_CASE("numbers are finite decimals", "[scenario]") {
  Reading r("{eps: 1e-05, theta: 10000.0, whole: 5, bad: nan, worse: 1e999, text: \"1.0\"}");
  ConfigReader reader = r.reader();
  CHECK(reader.find<double>("eps")->value == 1e-05);
  CHECK(reader.find<double>("theta")->value == 10000.0);
  CHECK(reader.find<double>("whole")->value == 5);
  CHECK_FALSE(reader.find<double>("bad"));
  CHECK_FALSE(reader.find<double>("worse"));
  CHECK_FALSE(reader.find<double>("text"));
}

TEST_CASE("limits include their ends", "[scenario]") {
  Reading r("{one: 1, zero: 0, f: 1.0, g: 1.5}");
  ConfigReader reader = r.reader();
  CHECK(reader.find<std::int64_t>("one", kPositive));
  CHECK_FALSE(reader.find<std::int64_t>("zero", kPositive));
  CHECK(r.message() == "job.zero must be at least 1, not 0");
  CHECK(reader.find<double>("f", Limits<double>{0, 1}));
  CHECK_FALSE(reader.find<double>("g", Limits<double>{0, 1}));
  CHECK(r.message() == "job.g must be at most 1, not 1.5");
}

TEST_CASE("a default is an assumption with its dotted key, and null is absent", "[scenario]") {
  Reading r("{batch: 4, steps: }");
  ConfigReader reader = r.reader();
  CHECK(reader.optional<std::int64_t>("batch", 1, "why").value == 4);
  CHECK(reader.optional<std::int64_t>("steps", 3, "three suffice").value == 3);
  CHECK(reader.optional<Bytes>("cap", 80_GiB, "whole card").value == 80_GiB);
  REQUIRE(r.assumptions.all().size() == 2);
  CHECK(r.assumptions.all()[0].key == "job.steps");
  CHECK(r.assumptions.all()[0].value == "3");
  CHECK(r.assumptions.all()[0].why == "three suffice");
  CHECK(r.assumptions.all()[1].value == "80 GiB");
  CHECK_FALSE(r.diagnostics.has_errors());
}

TEST_CASE("a value that cannot be read is an error, not an assumption", "[scenario]") {
  Reading r("{steps: x}");
  CHECK(r.reader().optional<std::int64_t>("steps", 3, "why").value == 3);
  CHECK(r.assumptions.all().empty());
  CHECK(r.diagnostics.error_count() == 1);
}

TEST_CASE("what is missing or unknown is said once", "[scenario]") {
  Reading r("{sequnce_length: 4, other: 1}");
  ConfigReader reader = r.reader();
  CHECK(reader.required<std::int64_t>("sequence_length").value == 0);
  CHECK(r.message() == "the key 'sequence_length' is missing in job");
  reader.finish();
  REQUIRE(r.diagnostics.error_count() == 3);
  CHECK(r.diagnostics.all()[1].message == "unknown key 'sequnce_length' in job");
  CHECK(r.diagnostics.all()[1].hint == "did you mean 'sequence_length'?");
  CHECK(r.diagnostics.all()[2].hint == "known: sequence_length");
  CHECK(r.keys == std::set<std::string>{"job.sequence_length"});
}

TEST_CASE("a map in the wrong kind gives one error only", "[scenario]") {
  Reading r("[1, 2]");
  ConfigReader reader = r.reader();
  reader.required<std::int64_t>("a");
  reader.finish();
  CHECK(r.diagnostics.error_count() == 1);
  CHECK(r.message() == "job must be a map of keys, not a list");
}

TEST_CASE("an absent section reads as empty and is placed at its parent", "[scenario]") {
  Reading r("{a: 1}");
  ConfigReader section = r.reader().section("save");
  CHECK(section.at().line == 1);
  CHECK_FALSE(section.has("place"));
  section.finish();
  CHECK(r.keys.count("job.save.place") == 1);
  CHECK_FALSE(r.diagnostics.has_errors());
}

TEST_CASE("quantities need their unit", "[scenario]") {
  Reading r("{a: 80, b: 80 gb, c: 80 GiB, d: 312 TFLOP/s, e: 400 Gb/s, f: 30 min}");
  ConfigReader reader = r.reader();
  CHECK_FALSE(reader.find<Bytes>("a"));
  CHECK(r.message() == "job.a needs a unit: '80'");
  CHECK_FALSE(reader.find<Bytes>("b"));
  CHECK(r.message() == "job.b must be a size, not '80 gb'");
  CHECK(reader.find<Bytes>("c")->value == 80_GiB);
  CHECK(reader.find<FlopRate>("d")->value == 312_TFLOPS);
  CHECK(reader.find<ByteRate>("e")->value == 400_Gbps);
  CHECK(reader.find<Duration>("f")->value == 1800_s);
}
