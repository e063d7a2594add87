#include "sim/timeline/read_allocator_log.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "sim/base/text.h"
#include "sim/timeline/gzip_file.h"

namespace sim {
namespace {

namespace json = simdjson::dom;

constexpr std::array<std::pair<std::string_view, AllocatorAction>, 8> kActions{{
    {"alloc", AllocatorAction::alloc},
    {"free_requested", AllocatorAction::free_requested},
    {"free_completed", AllocatorAction::free_completed},
    {"segment_alloc", AllocatorAction::segment_alloc},
    {"segment_free", AllocatorAction::segment_free},
    {"segment_map", AllocatorAction::segment_map},
    {"segment_unmap", AllocatorAction::segment_unmap},
    {"oom", AllocatorAction::oom},
}};

// Largest size and address that a recording can hold: beyond them sums could overflow.
constexpr std::int64_t kLargest = std::int64_t{1} << 50;
constexpr std::uint64_t kLargestAddress = std::uint64_t{1} << 56;
constexpr std::size_t kShown = 20;

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string shown;
  for (const char c : text.substr(0, kMost)) shown += c >= ' ' && c < '\x7f' ? c : '?';
  if (text.size() > kMost) shown += "...";
  return "'" + shown + "'";
}

// Files errors with their place, up to a limit, and counts the rest.
class Complaints {
 public:
  Complaints(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics)
      : file_(std::move(file)), diagnostics_(diagnostics) {}
  ~Complaints() {
    if (count_ > kShown) {
      diagnostics_.error({file_}, fmt::format("and {} more errors", count_ - kShown));
    }
  }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  void add(int line, std::size_t column, std::string message, std::string hint = {},
           std::size_t length = 1) {
    if (++count_ > kShown) return;
    diagnostics_.error({file_, line, static_cast<int>(column) + 1,
                        static_cast<int>(std::max<std::size_t>(1, length))},
                       std::move(message), std::move(hint));
  }
  // What may only follow from a line that could not be read is left unsaid.
  void add_unless_broken(int line, std::string message, std::string hint = {},
                         std::size_t length = 1) {
    if (count_ > consequences_) return;
    ++consequences_;
    add(line, 0, std::move(message), std::move(hint), length);
  }
  Span at(int line) const { return {file_, line, 1}; }
  bool any() const { return count_ > 0; }

 private:
  std::shared_ptr<const SourceFile> file_;
  Diagnostics& diagnostics_;
  std::size_t count_ = 0;
  std::size_t consequences_ = 0;  // of them, those about the state that earlier lines left
};

// Lines without their line ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    ++number_;
    return true;
  }
  int number() const { return number_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  int number_ = 0;
};

// The rules that every sequence of events keeps: what is freed was in use, with that size and on
// that stream.
class EventRules {
 public:
  // The mistake that `event` would be, or empty.
  std::string check(const AllocatorEvent& event) {
    const auto found = state_.find(event.address);
    const bool in_use = found != state_.end();
    switch (event.action) {
      case AllocatorAction::alloc:
        if (in_use) return "alloc of an address that is still in use";
        state_[event.address] = {event.size, event.stream, false};
        break;
      case AllocatorAction::free_requested:
        if (!in_use || found->second.freed) return "free of an address that is not in use";
        found->second.freed = true;
        if (std::string mistake = compare(found->second, event); !mistake.empty()) return mistake;
        break;
      case AllocatorAction::free_completed: {
        if (!in_use || !found->second.freed) {
          return "free_completed of an address whose free was not requested";
        }
        std::string mistake = compare(found->second, event);
        state_.erase(found);
        if (!mistake.empty()) return mistake;
        break;
      }
      default:
        break;
    }
    if (streams_.size() < kMostStreams) streams_.emplace(event.stream, true);
    if (streams_.size() >= kMostStreams) return "more than 60 streams";
    return {};
  }

 private:
  struct Block {
    Bytes size;
    std::uint64_t stream = 0;
    bool freed = false;
  };

  static std::string compare(const Block& block, const AllocatorEvent& event) {
    if (event.stream != block.stream) {
      return fmt::format("{} on stream {} of a block that was allocated on stream {}",
                         to_text(event.action), event.stream, block.stream);
    }
    if (event.size == block.size) return {};
    return fmt::format("{} of {} bytes where {} were allocated", to_text(event.action),
                       event.size.count, block.size.count);
  }

  static constexpr std::size_t kMostStreams = 61;
  std::unordered_map<std::uint64_t, Block> state_;  // by address
  std::unordered_map<std::uint64_t, bool> streams_;
};

std::optional<AllocatorAction> find_action(std::string_view name) {
  for (const auto& [text, action] : kActions) {
    if (text == name) return action;
  }
  return std::nullopt;
}

// Taken by the recorder, no act of the allocator.
bool is_remark(std::string_view name) { return name == "snapshot" || name == "user_defined"; }

std::string unknown_action_hint(std::string_view name) {
  std::vector<std::string> known;
  known.reserve(kActions.size());
  for (const auto& action : kActions) known.emplace_back(action.first);
  const std::string near = nearest(name.substr(0, 40), known);
  return near.empty() ? std::string{} : fmt::format("did you mean '{}'?", near);
}

// ---- events.csv -------------------------------------------------------------------------------

class EventsReader {
 public:
  EventsReader(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics)
      : file_(file), complaints_(std::move(file), diagnostics) {}

  bool read(AllocatorLog& log);

 private:
  static constexpr std::string_view kHeader = "action,addr,size,stream,time_us";

  void read_event(std::string_view line, int number, AllocatorLog& log);
  bool number_field(std::string_view line, int number, std::string_view field,
                    std::string_view name, std::uint64_t most, std::uint64_t& value);

  std::shared_ptr<const SourceFile> file_;
  Complaints complaints_;
  EventRules rules_;
};

bool EventsReader::read(AllocatorLog& log) {
  Lines lines(file_->text);
  std::string_view line;
  if (!lines.next(line)) {
    complaints_.add(0, 0, "the file is empty");
    return false;
  }
  if (line != kHeader) {
    complaints_.add(1, 0, fmt::format("header {} expected, not {}", quoted(kHeader), quoted(line)));
    return false;
  }
  while (lines.next(line)) {
    if (!line.empty()) read_event(line, lines.number(), log);
  }
  if (log.events.empty() && !complaints_.any()) complaints_.add(0, 0, "the file holds no event");
  return !complaints_.any();
}

void EventsReader::read_event(std::string_view line, int number, AllocatorLog& log) {
  std::array<std::string_view, 5> fields;
  std::size_t count = 0;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    if (count < fields.size()) fields[count] = line.substr(begin, end - begin);
    ++count;
    if (end == line.size()) break;
    begin = end + 1;
  }
  if (count != fields.size()) {
    complaints_.add(number, 0, fmt::format("5 columns expected, not {}", count), {}, line.size());
    return;
  }
  if (is_remark(fields[0])) return;
  const auto action = find_action(fields[0]);
  if (!action) {
    complaints_.add(number, 0, fmt::format("unknown action {}", quoted(fields[0])),
                    unknown_action_hint(fields[0]), fields[0].size());
    return;
  }
  std::uint64_t size = 0, time = 0;
  AllocatorEvent event;
  event.action = *action;
  // Each field is read whatever the others hold, so that every mistake of the line shows.
  constexpr std::uint64_t kAny = ~std::uint64_t{0};
  bool read = number_field(line, number, fields[1], "addr", kLargestAddress, event.address);
  read = number_field(line, number, fields[2], "size", kLargest, size) && read;
  read = number_field(line, number, fields[3], "stream", kAny, event.stream) && read;
  read = number_field(line, number, fields[4], "time_us", kAny, time) && read;
  if (!read) return;
  event.size = Bytes{static_cast<std::int64_t>(size)};
  if (size == 0) {
    complaints_.add(number, 0, "an event without a size", {}, line.size());
    return;
  }
  if (std::string mistake = rules_.check(event); !mistake.empty()) {
    complaints_.add_unless_broken(number, std::move(mistake),
                                  "a recording must start before the first allocation",
                                  line.size());
    return;
  }
  log.events.push_back(event);
}

bool EventsReader::number_field(std::string_view line, int number, std::string_view field,
                                std::string_view name, std::uint64_t most, std::uint64_t& value) {
  const char* end = field.data() + field.size();
  const auto [after, failed] = std::from_chars(field.data(), end, value);
  if (failed == std::errc{} && after == end && value <= most) return true;
  const bool too_large =
      failed == std::errc::result_out_of_range || (failed == std::errc{} && after == end);
  complaints_.add(number, static_cast<std::size_t>(field.data() - line.data()),
                  too_large ? fmt::format("{} {} is too large", name, quoted(field))
                            : fmt::format("{} must be a whole number, not {}", name, quoted(field)),
                  {}, field.size());
  return false;
}

// The settings beside an events file: {"meta": {"config": {"cap": GiB}, "total", "alloc_conf",
// ...}}.
bool read_settings(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics,
                   AllocatorLog& log) {
  Complaints complaints(file, diagnostics);
  json::parser parser;
  json::object meta;
  json::element document;
  if (auto error = parser.parse(file->text).get(document)) {
    complaints.add(1, 0, fmt::format("no JSON: {}", simdjson::error_message(error)));
    return false;
  }
  if (document["meta"].get(meta)) {
    complaints.add(1, 0, "an object 'meta' is missing");
    return false;
  }
  std::int64_t total = 0;
  if (meta["total"].get(total) || total <= 0 || total > kLargest) {
    complaints.add(1, 0, "meta.total must be the device's memory in bytes");
    return false;
  }
  log.total = Bytes{total};
  double cap = 0;
  const auto cap_error = meta["config"]["cap"].get(cap);
  if (!cap_error) {
    const double bytes = cap * 1073741824.0;
    if (!(bytes > 0 && bytes <= static_cast<double>(kLargest))) {
      complaints.add(1, 0, "meta.config.cap must be a number of GiB");
      return false;
    }
    log.cap = Bytes{static_cast<std::int64_t>(bytes)};
  } else if (cap_error != simdjson::NO_SUCH_FIELD && cap_error != simdjson::INCORRECT_TYPE) {
    complaints.add(1, 0, "meta.config.cap must be a number of GiB");
    return false;
  }
  std::string_view text;
  if (!meta["alloc_conf"].get(text)) log.conf = {std::string(text), complaints.at(1)};
  if (!meta["torch"].get(text)) log.torch = {std::string(text), complaints.at(1)};
  log.settings_known = true;
  return true;
}

// ---- corpus.jsonl -----------------------------------------------------------------------------

class CorpusReader {
 public:
  CorpusReader(std::shared_ptr<const SourceFile> file, Diagnostics& diagnostics)
      : file_(file), complaints_(std::move(file), diagnostics) {}

  bool read(AllocatorLog& log);

 private:
  void read_header(json::element line, AllocatorLog& log);
  void read_call(json::element line, AllocatorLog& log);
  bool read_operation(json::array op, AllocatorCall& call, AllocatorLog& log);
  bool read_alloc(json::array op, AllocatorCall& call, AllocatorLog& log);
  bool read_free(json::array op, AllocatorCall& call);
  void read_events(json::array events, AllocatorLog& log);
  bool count(json::object line, std::string_view key, std::int64_t& value);
  bool count(json::object line, std::string_view key, Bytes& value) {
    return count(line, key, value.count);
  }
  // Columns inside a line of JSON are not known to the parser: the line is blamed.
  void complain(std::string message, std::string hint = {}) {
    complaints_.add(number_, 0, std::move(message), std::move(hint));
  }

  std::optional<std::int64_t> promise(json::element header, std::string_view key);
  void check_promise(const std::optional<std::int64_t>& promised, std::int64_t found,
                     std::string_view what);

  struct Tensor {
    std::uint32_t number = 0;
    bool freed = false;
    bool failed = false;
  };

  std::shared_ptr<const SourceFile> file_;
  Complaints complaints_;
  EventRules rules_;
  std::unordered_map<std::int64_t, Tensor> tensors_;
  // What the header says will follow, and what did, readable or not.
  std::optional<std::int64_t> promised_calls_, promised_events_;
  std::int64_t found_calls_ = 0, found_events_ = 0;
  int number_ = 0;
};

bool CorpusReader::read(AllocatorLog& log) {
  json::parser parser;
  Lines lines(file_->text);
  std::string_view text;
  log.is_corpus = true;
  while (lines.next(text)) {
    number_ = lines.number();
    if (text.empty()) continue;
    found_calls_ += number_ > 1;
    json::element line;
    if (auto error = parser.parse(text.data(), text.size()).get(line)) {
      complain(fmt::format("no JSON: {}", simdjson::error_message(error)));
      continue;
    }
    json::array events;
    if (number_ == 1) {
      read_header(line, log);
    } else if (!line["events"].get(events)) {
      --found_calls_;
      read_events(events, log);
    } else {
      read_call(line, log);
    }
  }
  check_promise(promised_calls_, found_calls_, "ops");
  check_promise(promised_events_, found_events_, "events");
  if (log.calls.empty() && !complaints_.any()) complaints_.add(0, 0, "the file holds no call");
  return !complaints_.any();
}

std::optional<std::int64_t> CorpusReader::promise(json::element header, std::string_view key) {
  std::int64_t value = 0;
  const auto error = header[key].get(value);
  if (!error && value >= 0) return value;
  if (error != simdjson::NO_SUCH_FIELD) complain(fmt::format("'{}' must be a count", key));
  return std::nullopt;
}

// A line cut in the middle has been complained about already.
void CorpusReader::check_promise(const std::optional<std::int64_t>& promised, std::int64_t found,
                                 std::string_view what) {
  if (!promised || *promised == found) return;
  complaints_.add_unless_broken(
      0, fmt::format("the recording is {}: its header counts {} {}, {} follow",
                     found < *promised ? "truncated" : "longer than it says",
                     group_digits(*promised), what, group_digits(found)));
}

void CorpusReader::read_header(json::element line, AllocatorLog& log) {
  std::string_view text;
  if (line["conf"].get(text)) {
    complain("the first line must hold the settings: 'conf' is missing");
    return;
  }
  log.conf = {std::string(text), complaints_.at(1)};
  log.settings_known = true;
  if (!line["name"].get(text)) log.name = text;
  if (!line["torch"].get(text)) log.torch = {std::string(text), complaints_.at(1)};
  std::int64_t value = 0;
  if (line["total"].get(value) || value <= 0 || value > kLargest) {
    complain("'total' must be the device's memory in bytes");
  } else {
    log.total = Bytes{value};
  }
  if (const auto error = line["cap_bytes"].get(value); !error && value > 0 && value <= kLargest) {
    log.cap = Bytes{value};
  } else if (error != simdjson::NO_SUCH_FIELD) {
    complain("'cap_bytes' must be a number of bytes");
  }
  std::uint64_t stream = 0;
  if (!line["side_stream"].get(stream)) log.side_stream = stream;
  promised_calls_ = promise(line, "ops");
  promised_events_ = promise(line, "events");
}

void CorpusReader::read_call(json::element line, AllocatorLog& log) {
  json::object object;
  json::array op;
  if (line.get(object) || object["op"].get(op)) {
    complain("a line with 'op' expected");
    return;
  }
  AllocatorCall call;
  bool read = read_operation(op, call, log);
  AllocatorCounters& after = call.after;
  read = count(object, "alloc", after.allocated) && read;
  read = count(object, "active", after.active) && read;
  read = count(object, "reserved", after.reserved) && read;
  read = count(object, "requested", after.requested) && read;
  read = count(object, "inactive", after.inactive_split) && read;
  read = count(object, "segments", after.segments) && read;
  read = count(object, "retries", after.retries) && read;
  read = count(object, "ooms", after.ooms) && read;
  if (read) log.calls.push_back(std::move(call));
}

bool CorpusReader::count(json::object line, std::string_view key, std::int64_t& value) {
  if (!line[key].get(value) && value >= 0) return true;
  complain(fmt::format("counter '{}' must be a whole number", key));
  return false;
}

bool CorpusReader::read_operation(json::array op, AllocatorCall& call, AllocatorLog& log) {
  std::string_view kind;
  if (op.at(0).get(kind)) {
    complain("'op' must start with its kind");
    return false;
  }
  if (kind == "alloc") return read_alloc(op, call, log);
  if (kind == "free") return read_free(op, call);
  if (kind == "empty_cache") {
    call.kind = AllocatorCall::Kind::empty_cache;
    return true;
  }
  complain(fmt::format("unknown operation {}", quoted(kind)),
           "known operations: alloc, free, empty_cache");
  return false;
}

bool CorpusReader::read_alloc(json::array op, AllocatorCall& call, AllocatorLog& log) {
  std::int64_t id = 0, side = 0;
  std::string_view outcome, message;
  call.kind = AllocatorCall::Kind::alloc;
  if (op.at(1).get(id) || op.at(2).get(call.size.count) || op.at(3).get(side) ||
      op.at(4).get(outcome)) {
    complain("alloc must read [\"alloc\", id, bytes, side stream, \"ok\" or \"oom\"]");
    return false;
  }
  if (call.size.count <= 0 || call.size.count > kLargest) {
    complain(fmt::format("alloc of {} bytes", call.size.count));
    return false;
  }
  if (outcome != "ok" && outcome != "oom") {
    complain(fmt::format("outcome {} is neither 'ok' nor 'oom'", quoted(outcome)));
    return false;
  }
  call.on_side_stream = side != 0;
  call.failed = outcome == "oom";
  if (!op.at(5).get(message)) call.message = message;
  const Tensor tensor{log.allocations, false, call.failed};
  if (!tensors_.emplace(id, tensor).second) {
    complain(fmt::format("id {} is allocated a second time", id));
    return false;
  }
  call.allocation = log.allocations++;
  return true;
}

bool CorpusReader::read_free(json::array op, AllocatorCall& call) {
  std::int64_t id = 0;
  std::string_view mark;
  call.kind = AllocatorCall::Kind::free;
  if (op.at(1).get(id)) {
    complain("free must read [\"free\", id]");
    return false;
  }
  const auto found = tensors_.find(id);
  if (found == tensors_.end() || found->second.freed || found->second.failed) {
    complaints_.add_unless_broken(number_, fmt::format("free of id {}, which is not in use", id));
    return false;
  }
  found->second.freed = true;
  call.allocation = found->second.number;
  call.recorded = !op.at(2).get(mark) && mark == "recorded";
  return true;
}

void CorpusReader::read_events(json::array events, AllocatorLog& log) {
  std::size_t index = 0;
  for (const json::element& item : events) {
    ++index;
    ++found_events_;
    json::array fields;
    std::string_view name;
    AllocatorEvent event;
    if (item.get(fields) || fields.at(0).get(name)) {
      complain(fmt::format("event {} must read [action, address, size, stream]", index));
      continue;
    }
    if (is_remark(name)) continue;
    const auto action = find_action(name);
    if (!action) {
      complain(fmt::format("event {} has the unknown action {}", index, quoted(name)),
               unknown_action_hint(name));
      continue;
    }
    event.action = *action;
    if (fields.at(1).get(event.address) || fields.at(2).get(event.size.count) ||
        fields.at(3).get(event.stream) || event.address > kLargestAddress ||
        event.size.count <= 0 || event.size.count > kLargest) {
      complain(fmt::format("event {} must read [action, address, size, stream]", index));
      continue;
    }
    if (std::string mistake = rules_.check(event); !mistake.empty()) {
      complaints_.add_unless_broken(number_, fmt::format("event {}: {}", index, mistake));
      continue;
    }
    log.events.push_back(event);
  }
}

std::string without_suffix(std::string name, std::string_view suffix) {
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  return name;
}

}  // namespace

std::optional<AllocatorLog> read_allocator_corpus(std::shared_ptr<const SourceFile> file,
                                                  Diagnostics& diagnostics) {
  AllocatorLog log;
  if (!CorpusReader(std::move(file), diagnostics).read(log)) return std::nullopt;
  return log;
}

std::optional<AllocatorLog> read_allocator_events(std::shared_ptr<const SourceFile> file,
                                                  std::shared_ptr<const SourceFile> settings,
                                                  Diagnostics& diagnostics) {
  AllocatorLog log;
  const bool known = settings == nullptr || read_settings(std::move(settings), diagnostics, log);
  if (!EventsReader(std::move(file), diagnostics).read(log) || !known) return std::nullopt;
  return log;
}

std::optional<AllocatorLog> read_allocator_log(const std::string& path, Diagnostics& diagnostics) {
  auto file = read_gzip_file(path, {}, diagnostics);
  if (!file) return std::nullopt;
  const std::string plain = without_suffix(path, ".gz");
  const std::string name = std::filesystem::path(plain).filename().string();
  std::optional<AllocatorLog> log;
  if (plain.ends_with(".csv")) {
    std::shared_ptr<const SourceFile> settings;
    const std::string beside = without_suffix(without_suffix(plain, ".csv"), ".events") + ".json";
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) {
      settings = read_source_file(beside, {}, diagnostics);
      if (!settings) return std::nullopt;
    }
    log = read_allocator_events(std::move(file), std::move(settings), diagnostics);
  } else if (plain.ends_with(".jsonl")) {
    log = read_allocator_corpus(std::move(file), diagnostics);
  } else {
    diagnostics.error({std::make_shared<SourceFile>(SourceFile{path, {}})},
                      "no allocator recording, by its name",
                      "recordings end in .jsonl, .events.csv, or these with .gz");
    return std::nullopt;
  }
  if (log && log->name.empty()) log->name = without_suffix(without_suffix(name, ".csv"), ".events");
  return log;
}

}  // namespace sim
