// The program from outside: exit codes, streams and files.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, err;
};

// A scratch folder that goes away again.
struct Scratch {
  fs::path path;
  Scratch() {
    static int count = 0;
    path = fs::temp_directory_path() / fmt::format("rehearse-{}-{}", ::getpid(), count++);
    fs::create_directories(path);
  }
  ~Scratch() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

// Runs a shell line in which `rehearse` stands for the program.
Outcome shell(const std::string& line, const std::string& environment = "") {
  const Scratch scratch;
  const std::string function =
      "rehearse() { env " + environment + " '" SIM_BINARY_DIR "/bin/rehearse' \"$@\"; }; ";
  std::ofstream(scratch.file("line.sh")) << function << line << "\n";
  const std::string command = "cd '" SIM_SOURCE_DIR "' && sh '" + scratch.file("line.sh") + "' >'" +
                              scratch.file("out") + "' 2>'" + scratch.file("err") + "' </dev/null";
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), testing::read_text(scratch.file("out")),
          testing::read_text(scratch.file("err"))};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kFits = "tests/golden/tiny-fits/scenario.yaml";
const std::string kCrash = "tests/golden/tiny-crash/scenario.yaml";

TEST_CASE("run: 0 where the job fits, 1 where it does not, the report on stdout", "[cli]") {
  const Outcome fits = shell("rehearse run " + kFits);
  CHECK(fits.code == 0);
  CHECK(has(fits.out, "Fits:"));
  CHECK(fits.err.empty());
  const Outcome crash = shell("rehearse run " + kCrash);
  CHECK(crash.code == 1);
  CHECK(has(crash.out, "Crashed in save"));
  CHECK(crash.err.empty());
}

TEST_CASE("run --json writes one object and nothing else", "[cli]") {
  const Outcome outcome = shell("rehearse run --json " + kCrash);
  CHECK(outcome.code == 1);
  CHECK(nlohmann::json::parse(outcome.out)["verdict"]["kind"] == "crashed");
  CHECK(shell("rehearse run --format json " + kCrash).out == outcome.out);
  CHECK(shell("rehearse run --json " + kCrash).out == outcome.out);
  const auto exposed = [](const std::string& options) {
    return nlohmann::json::parse(shell("rehearse run --json " + options + kFits).out)["step"].at(
        "exposed_communication_seconds");
  };
  CHECK(exposed("").is_null());
  CHECK(exposed("--slices ").is_number());
}

TEST_CASE("run --memory-snapshot: what Python reads adds up to what the report says", "[cli]") {
  const auto figures = [](const std::string& scenario) {
    const Scratch scratch;
    const std::string file = scratch.file("x_snapshot.pickle");
    const Outcome run = shell("rehearse run --json " + scenario + " --memory-snapshot " + file);
    const auto report = nlohmann::json::parse(run.out);
    const Outcome checked = shell("python3 tests/support/check_snapshot.py " + file);
    INFO(run.err << checked.err);
    REQUIRE(checked.code == 0);
    std::istringstream lines(checked.out);
    std::size_t ranks = 0;
    std::int64_t rank = 0, events = 0, reserved = 0, allocated = 0;
    while (lines >> rank >> events >> reserved >> allocated) {
      const auto& summary = report["ranks"].at(ranks++);
      CHECK(summary["rank"] == rank);
      const auto& last = summary["phases"].back();
      if (report["verdict"]["kind"] == "fits") {
        CHECK(allocated == last["end_allocated_bytes"]);
        CHECK(reserved == last["end_reserved_bytes"]);
      }
    }
    CHECK(ranks == report["ranks"].size());
  };
  figures(kFits);
  figures(kCrash);
  figures("scenarios/qwen2-72b-qlora-zero3.yaml");
  figures(kFits + " --set software.torch=2.6.0 --set allocator.conf=expandable_segments:True");
}

TEST_CASE("trouble: exit 2, words on stderr, nothing on stdout", "[cli]") {
  const std::vector<std::string> lines = {
      "rehearse",
      "rehearse run",
      "rehearse run no-such-file.yaml",
      "rehearse run --nonsense x",
      "rehearse rnu x",
      "rehearse run --format xml " + kFits,
      "rehearse run " + kFits + " --set job.micro_batch_size",
      "rehearse run " + kFits + " --set job.micro_batch_siz=4",
      "rehearse run " + kFits + " --set job.micro_batch_size=four",
      "rehearse program " + kFits + " --rank 99",
      "rehearse list things",
      "rehearse replay tests/data/allocator/short/default.jsonl --capacity ''",
      "rehearse validate h200_sweep tests/data/h200/sweep.csv",
      "rehearse validate h200_sweep_memory no-such-table.csv",
      "rehearse run " + kFits + " -o /no/such/folder/report.txt",
      "rehearse check " + kFits + " --set expect.verdct=fits",
      "rehearse check " + kFits + " --set expect.verdict=fit",
      "rehearse check " + kFits + " --set expect.phase=sav"};
  for (const std::string& line : lines) {
    const Outcome outcome = shell(line);
    INFO(line << "\n" << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
}

TEST_CASE("a misspelt word gets a suggestion", "[cli]") {
  CHECK(has(shell("rehearse rnu x").err, "did you mean 'run'?"));
  CHECK(has(shell("rehearse list model").err, "did you mean 'models'?"));
  CHECK(has(shell("rehearse run " + kFits + " --set job.micro_batch_siz=4").err,
            "did you mean 'micro_batch_size'?"));
}

TEST_CASE("overrides lie over the file", "[cli]") {
  const Outcome outcome = shell("rehearse run --json " + kCrash + " --set 'allocator.cap=30 GiB'");
  CHECK(outcome.code == 0);
  CHECK(shell("rehearse run --json --set 'allocator.cap=30 GiB' " + kCrash).out == outcome.out);
}

TEST_CASE("option -o writes a whole file and leaves stdout empty", "[cli]") {
  const Scratch scratch;
  const fs::path folder = scratch.path / "results";
  fs::create_directories(folder);
  const std::string file = (folder / "report.json").string();
  const Outcome outcome = shell("rehearse run --json -o '" + file + "' " + kFits);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.empty());
  CHECK(nlohmann::json::parse(testing::read_text(file))["schema"] == "rehearse.report/1");
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
}

TEST_CASE("option -o follows a link and keeps the mode of the file behind it", "[cli]") {
  const Scratch scratch;
  const std::string file = scratch.file("report.json"), link = scratch.file("latest");
  std::ofstream(file) << "old";
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("report.json", link);
  CHECK(shell("rehearse run --json -o '" + link + "' " + kFits).code == 0);
  CHECK(fs::is_symlink(link));
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(nlohmann::json::parse(testing::read_text(file))["schema"] == "rehearse.report/1");
}

TEST_CASE("option -o writes into a pipe and leaves it there", "[cli]") {
  const Scratch scratch;
  const std::string pipe = scratch.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Outcome outcome = shell("cat '" + pipe + "' & rehearse run --json -o '" + pipe + "' " +
                                kFits + "; code=$?; wait; exit $code");
  CHECK(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out)["schema"] == "rehearse.report/1");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("option -o never overwrites an input", "[cli]") {
  const Scratch scratch;
  const std::string copy = scratch.file("scenario.yaml");
  const std::string model = fs::absolute(SIM_SOURCE_DIR "/tests/golden/models/tiny-llama").string();
  std::string text = testing::read_text(SIM_SOURCE_DIR "/" + kFits);
  text.replace(text.find("../models/tiny-llama"), 20, scratch.file("model"));
  std::ofstream(copy) << text;
  fs::copy(model, scratch.file("model"));
  for (const std::string& input : {copy, scratch.file("model/config.json")}) {
    const std::string before = testing::read_text(input);
    for (const std::string verb : {"run", "check", "plan", "program"}) {
      const Outcome outcome = shell("rehearse " + verb + " '" + copy + "' -o '" + input + "'");
      CHECK(outcome.code == 2);
      CHECK(has(outcome.err, "would overwrite an input"));
    }
    CHECK(testing::read_text(input) == before);
  }
}

TEST_CASE("an input that is no regular file is refused, not waited for", "[cli]") {
  const Scratch scratch;
  const std::string pipe = scratch.file("pipe.jsonl");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& line :
       {"check '" + pipe + "'", "replay '" + pipe + "'", std::string("check -")}) {
    const Outcome outcome = shell("rehearse " + line);
    INFO(line << "\n" << outcome.err);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, "cannot"));
  }
}

TEST_CASE("check: 0 as expected, 1 where an expectation is missed", "[cli]") {
  CHECK(shell("rehearse check " + kFits).code == 0);
  const Outcome good = shell("rehearse check " + kFits + " --set expect.verdict=fits");
  CHECK(good.code == 0);
  CHECK(has(good.out, "as expected"));
  const Outcome miss = shell("rehearse check " + kFits + " --set expect.verdict=hang");
  CHECK(miss.code == 1);
  CHECK(has(miss.out, "MISS"));
}

TEST_CASE("help is an answer, fits 80 columns and starts with examples", "[cli]") {
  for (const std::string verb :
       {"", "run", "check", "plan", "program", "timeline", "replay", "validate", "list"}) {
    const Outcome outcome = shell("rehearse " + verb + " --help");
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    std::istringstream lines(outcome.out);
    for (std::string text; std::getline(lines, text);) {
      INFO(verb << ": " << text);
      CHECK(text.size() <= 80);
    }
  }
  const std::string help = shell("rehearse --help").out;
  CHECK(help.find("Examples:") < help.find("Usage:"));
  CHECK(shell("rehearse --version").out.starts_with("rehearse "));
}

TEST_CASE("colours follow the option, then the environment", "[cli]") {
  CHECK_FALSE(has(shell("rehearse run " + kFits).out, "\x1b["));
  CHECK(has(shell("rehearse run --color always " + kFits).out, "\x1b["));
  CHECK(has(shell("rehearse run " + kFits, "CLICOLOR_FORCE=1").out, "\x1b["));
  CHECK_FALSE(has(shell("rehearse run " + kFits, "CLICOLOR_FORCE=1 NO_COLOR=1").out, "\x1b["));
  CHECK_FALSE(has(shell("rehearse run --color never " + kFits, "FORCE_COLOR=1").out, "\x1b["));
}

TEST_CASE("underscores do for dashes in option names", "[cli]") {
  const Outcome outcome = shell("rehearse run --no_such_option " + kFits);
  CHECK(has(outcome.err, "--no-such-option"));
}

TEST_CASE("a reader that leaves early is no trouble", "[cli]") {
  const Outcome outcome =
      shell("(rehearse run --json " + kFits + "; echo \"code $?\" >&2) | head -c 1 >/dev/null");
  CHECK(outcome.err == "code 0\n");
}

TEST_CASE("stages print as text, kinds are listed", "[cli]") {
  CHECK(has(shell("rehearse plan " + kFits).out, "LlamaDecoderLayer"));
  CHECK(shell("rehearse program " + kFits + " --rank 1").code == 0);
  CHECK(has(shell("rehearse timeline " + kFits).out, "verdict fits"));
  CHECK(has(shell("rehearse list models").out, "llama-2-7b-hf "));
  CHECK(has(shell("rehearse list").out, "architectures:\n"));
  CHECK(nlohmann::json::parse(shell("rehearse list --json commands").out)["commands"].size() == 8);
}

}  // namespace
}  // namespace sim
