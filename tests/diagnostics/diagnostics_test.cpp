// Is the complaint helpful? Each <mistake>.yaml is prepared as for a run, up to its programs, and
// must give exactly the text of <mistake>.expected. Cases are read from the root of the source
// tree, so paths in messages are relative.
// "(structure)" in a case's first line: the JSON Schema refuses it, too.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/study/run.h"
#include "tests/support/catch.h"

using namespace sim;

namespace {

// A few models and machines of their own, so that no message changes when one is added to the
// product.
const DataRoots kRoots{"tests/diagnostics/data/models", "tests/diagnostics/data/hardware"};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string complaint(const std::string& path, const std::vector<Override>& overrides = {}) {
  Diagnostics d;
  const auto stages = study::prepare(path, kRoots, overrides, d);
  CHECK(stages.has_value() != d.has_errors());
  return render(d);
}

}  // namespace

TEST_CASE("each mistake gets its message", "[diagnostics]") {
  std::filesystem::current_path(SIM_SOURCE_DIR);
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/diagnostics")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string path = entry.path().generic_string();
    std::string expected_path = path;
    expected_path.replace(path.size() - 5, 5, ".expected");
    const std::string actual = complaint(path);
    INFO(path << " says:\n" << actual);
    CHECK(actual == slurp(expected_path));
    ++cases;
  }
  CHECK(cases >= 25);
}

TEST_CASE("what is no file gets a message", "[diagnostics]") {
  std::filesystem::current_path(SIM_SOURCE_DIR);
  CHECK(complaint("tests/diagnostics") ==
        "tests/diagnostics: error: cannot read the file: it is a directory\n");
  CHECK(complaint("scenarios/absent.yaml") ==
        "scenarios/absent.yaml: error: cannot read the file: No such file or directory\n");
}

TEST_CASE("a mistake on the command line is shown there", "[diagnostics]") {
  std::filesystem::current_path(SIM_SOURCE_DIR);
  const std::string path = "scenarios/vicuna-7b-fsdp-save.yaml";
  CHECK(complaint(path, {{"job.micro_batch_size", "-4"}}) ==
        "command line:1:22: error: job.micro_batch_size must be at least 1, not -4\n"
        "    1 | job.micro_batch_size=-4\n"
        "      |                      ^~\n");
  CHECK(complaint(path, {{"job.micro_batch_szie", "4"}}) ==
        "command line:1:5: error: unknown key 'micro_batch_szie' in job\n"
        "    1 | job.micro_batch_szie=4\n"
        "      |     ^~~~~~~~~~~~~~~~\n"
        "help: did you mean 'micro_batch_size'?\n");
  CHECK(complaint(path, {{"job.save", "{place: gpu"}}) ==
        "command line:1:10: error: this '{' is never closed\n"
        "    1 | job.save={place: gpu\n"
        "      |          ^\n"
        "help: a closing bracket or a ',' is missing\n");
  CHECK(complaint(path, {{"model.name", "x"}}) ==
        "command line:1:7: error: 'model' is no map, so it has no 'name'\n"
        "    1 | model.name=x\n"
        "      |       ^~~~\n");
  CHECK(complaint(path, {{"job..x", "1"}}) ==
        "command line:1:5: error: a key is expected here, as in job.micro_batch_size=4\n"
        "    1 | job..x=1\n"
        "      |     ^\n");
}
