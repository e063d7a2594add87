// What the reader of allocator recordings says about damaged ones.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "sim/study/replay.h"
#include "sim/timeline/read_allocator_log.h"
#include "tests/support/catch.h"

using namespace sim;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<const SourceFile> file(std::string text, std::string path = "log") {
  return std::make_shared<SourceFile>(SourceFile{std::move(path), std::move(text)});
}

std::string events_complaints(const std::string& rows,
                              const std::string& header = "action,addr,size,stream,time_us\n") {
  Diagnostics diagnostics;
  CHECK_FALSE(read_allocator_events(file(header + rows), nullptr, diagnostics));
  return render(diagnostics);
}

const std::string kHeader = R"({"name": "x", "conf": "", "cap_bytes": 1048576000, )"
                            R"("total": 2097152000, "torch": "2.11.0", "side_stream": 0})";

std::string counters(std::int64_t allocated, std::int64_t reserved) {
  const std::string a = std::to_string(allocated), r = std::to_string(reserved);
  return R"(, "alloc": )" + a + R"(, "active": )" + a + R"(, "reserved": )" + r +
         R"(, "requested": )" + a + R"(, "inactive": )" + std::to_string(reserved - allocated) +
         R"(, "segments": 1, "retries": 0, "ooms": 0})" + "\n";
}

std::string corpus_complaints(const std::string& lines, const std::string& header = kHeader) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_allocator_corpus(file(header + "\n" + lines), diagnostics));
  return render(diagnostics);
}

class Folder {
 public:
  Folder() : path_(std::filesystem::path(SIM_BINARY_DIR) / "allocator_log_test") {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("A small events file reads and replays without settings", "[replay]") {
  Diagnostics diagnostics;
  const auto log = read_allocator_events(
      file("action,addr,size,stream,time_us\n"
           "segment_alloc,4194304,2097152,0,1\nalloc,4194304,100,0,2\n"
           "free_requested,4194304,100,0,3\nfree_completed,4194304,100,0,4\r\n"),
      nullptr, diagnostics);
  REQUIRE(log);
  CHECK_FALSE(log->settings_known);
  const auto result = study::replay(*log, {}, diagnostics);
  REQUIRE(result);
  CHECK(result->differences == 0);
  CHECK(result->operations == 4);
  REQUIRE(result->notes.size() == 1);
  CHECK_THAT(result->notes[0], Contains("no settings"));
}

TEST_CASE("Mistakes in an events file are named with line and column", "[replay]") {
  CHECK_THAT(events_complaints("", "action,address\n"), Contains("log:1:1: error: header"));
  CHECK_THAT(events_complaints("", ""), Contains("empty"));
  CHECK_THAT(events_complaints(""), Contains("no event"));
  CHECK_THAT(events_complaints("alloc,1,2,3\n"), Contains("log:2:1: error: 5 columns expected"));
  CHECK_THAT(events_complaints("aloc,1,2,3,4\n"), Contains("did you mean 'alloc'?"));
  CHECK_THAT(events_complaints("alloc,1,x,3,4\n"), Contains("log:2:9: error: size"));
  CHECK_THAT(events_complaints("alloc,1,-2,3,4\n"), Contains("size must be a whole number"));
  CHECK_THAT(events_complaints("alloc,99999999999999999999,2,3,4\n"), Contains("too large"));
  CHECK_THAT(events_complaints("alloc,1,0,3,4\n"), Contains("without a size"));
  CHECK_THAT(events_complaints("free_requested,1,2,3,4\n"), Contains("not in use"));
  CHECK_THAT(events_complaints("free_completed,1,2,3,4\n"), Contains("not requested"));
  CHECK_THAT(events_complaints("alloc,1,2,3,4\nalloc,1,2,3,4\n"), Contains("still in use"));
}

TEST_CASE("All mistakes of a file show, but not endlessly many", "[replay]") {
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += "nonsense\n";
  const std::string text = events_complaints(rows);
  CHECK_THAT(text, Contains("log:21:1:"));
  CHECK_THAT(text, !Contains("log:22:1:"));
  CHECK_THAT(text, Contains("and 80 more errors"));
}

TEST_CASE("Mistakes in a corpus are named with their line", "[replay]") {
  const std::string good = R"({"op": ["alloc", 1, 100, 0, "ok"])" + counters(512, 2097152);
  CHECK_THAT(corpus_complaints(good, R"({"name": "x"})"), Contains("'conf' is missing"));
  CHECK_THAT(corpus_complaints(good, "{"), Contains("log:1:1: error: no JSON"));
  CHECK_THAT(corpus_complaints(""), Contains("no call"));
  CHECK_THAT(corpus_complaints("[]\n"), Contains("log:2:1: error: a line with 'op'"));
  CHECK_THAT(corpus_complaints(good + good),
             Contains("log:3:1: error: id 1 is allocated a second"));
  CHECK_THAT(corpus_complaints(R"({"op": ["free", 7])" + counters(0, 0)), Contains("free of id 7"));
  CHECK_THAT(corpus_complaints(R"({"op": ["resize", 7])" + counters(0, 0)),
             Contains("unknown operation 'resize'"));
  CHECK_THAT(corpus_complaints(R"({"op": ["alloc", 1, 100, 0, "ok"]})"
                               "\n"),
             Contains("counter 'alloc'"));
  CHECK_THAT(corpus_complaints(good + R"({"events": [["alloc", 1]]})"), Contains("event 1"));
  CHECK_THAT(corpus_complaints(good + R"({"events": [["alock", 1, 2, 3]]})"),
             Contains("unknown action 'alock'"));
}

TEST_CASE("A free keeps the size and the stream of its allocation", "[replay]") {
  const std::string alloc = "segment_alloc,0,2097152,0,0\nalloc,0,512,0,1\n";
  CHECK_THAT(events_complaints(alloc + "free_requested,0,512,7,2\n"),
             Contains("log:4:1: error: free_requested on stream 7 of a block that was allocated on "
                      "stream 0"));
  CHECK_THAT(events_complaints(alloc + "free_requested,0,256,0,2\n"),
             Contains("free_requested of 256 bytes where 512 were allocated"));
}

TEST_CASE("An allocation on another stream than the emulator's is a difference", "[replay]") {
  Diagnostics diagnostics;
  const auto log = read_allocator_events(
      file("action,addr,size,stream,time_us\nsegment_alloc,4194304,2097152,0,1\n"
           "alloc,4194304,512,0,1\nalloc,4194816,512,7,1\n"),
      nullptr, diagnostics);
  REQUIRE(log);
  const auto result = study::replay(*log, {}, diagnostics);
  REQUIRE(result);
  CHECK(result->differences > 0);
}

TEST_CASE("A corpus holds what its header counts", "[replay]") {
  const std::string header = kHeader.substr(0, kHeader.size() - 1) + R"(, "ops": 2, "events": 1})";
  const std::string first = R"({"op": ["alloc", 1, 100, 0, "ok"])" + counters(512, 2097152);
  const std::string text = corpus_complaints(first, header);
  CHECK_THAT(text, Contains("log: error: the recording is truncated: its header counts 2 ops, 1"));
  CHECK_THAT(text, Contains("its header counts 1 events, 0 follow"));
  const std::string rest = R"({"op": ["free", 1])" + counters(0, 2097152);
  CHECK_THAT(corpus_complaints(first + rest, header), !Contains("ops"));
  const std::string events = R"({"events": [["alloc", 0, 100, 0], ["alloc", 4096, 100, 0]]})";
  CHECK_THAT(corpus_complaints(first + rest + events, header), Contains("longer than it says"));
}

TEST_CASE("What only follows from a line that was lost is left unsaid", "[replay]") {
  const std::string text = corpus_complaints("x\n" + (R"({"op": ["free", 1])" + counters(0, 0)));
  CHECK_THAT(text, Contains("log:2:1: error: no JSON"));
  CHECK_THAT(text, !Contains("not in use"));
  CHECK_THAT(events_complaints("alloc,4096,x,0,1\nfree_requested,4096,512,0,2\n"),
             !Contains("not in use"));
}

TEST_CASE("A what-if on a recording that the emulator does not follow says so", "[replay]") {
  Diagnostics diagnostics;
  const auto log = read_allocator_events(
      file("action,addr,size,stream,time_us\nalloc,4194304,512,0,1\n"), nullptr, diagnostics);
  REQUIRE(log);
  study::ReplayOptions options;
  options.capacity = Bytes{std::int64_t{1} << 30};
  const auto result = study::replay(*log, options, diagnostics);
  REQUIRE(result);
  CHECK_THAT(result->notes.back(), Contains("under its own settings 1 of 1 operations differ"));
}

TEST_CASE("A corpus without events replays with made-up addresses", "[replay]") {
  const std::string lines = R"({"op": ["alloc", 1, 512, 0, "ok"])" + counters(512, 2097152) +
                            R"({"op": ["free", 1])" + counters(0, 2097152);
  std::string fixed = lines;
  fixed.replace(fixed.rfind("\"inactive\": 2097152"), 19, "\"inactive\": 0");
  Diagnostics diagnostics;
  const auto log = read_allocator_corpus(file(kHeader + "\n" + fixed), diagnostics);
  REQUIRE(log);
  const auto result = study::replay(*log, {}, diagnostics);
  REQUIRE(result);
  CHECK(result->differences == 0);
  CHECK_THAT(result->notes[0], Contains("made up"));
}

TEST_CASE("Files that are cut short, damaged, missing or of another kind", "[replay]") {
  const Folder folder;
  const auto complaint = [](const std::string& path) {
    Diagnostics diagnostics;
    CHECK_FALSE(read_allocator_log(path, diagnostics));
    return render(diagnostics);
  };
  const std::string whole =
      read_file(std::string(SIM_SOURCE_DIR) + "/tests/data/allocator/alloc-training-like.jsonl.gz");
  CHECK_THAT(complaint(folder.write("a.jsonl.gz", whole.substr(0, whole.size() / 2))),
             Contains("cut short"));
  std::string damaged = whole;
  for (std::size_t i = 1000; i < 1100; ++i) damaged[i] = '\x55';
  CHECK_THAT(complaint(folder.write("b.jsonl.gz", damaged)), Contains("damaged"));
  CHECK_THAT(complaint(folder.write("c.txt", "hello")), Contains("no allocator recording"));
  CHECK_THAT(complaint(std::string(SIM_BINARY_DIR) + "/absent.jsonl"),
             Contains("absent.jsonl: error: cannot open"));
  CHECK_THAT(complaint(std::string(SIM_SOURCE_DIR)), Contains("directory"));
  CHECK_THAT(complaint(folder.write("e.jsonl.gz", "neither log nor gzip")), Contains("not gzip"));
  const std::string pipe = folder.path("pipe.jsonl");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(complaint(pipe),
             Contains("pipe.jsonl: error: cannot read the file: it is a named pipe"));
  const std::string csv =
      "action,addr,size,stream,time_us\nsegment_alloc,0,2097152,0,0\n"
      "alloc,0,1,0,0\n";
  folder.write("d.json", R"({"meta": {"total": "large"}})");
  CHECK_THAT(complaint(folder.write("d.events.csv", csv)), Contains("meta.total"));
}
