// PYTORCH_CUDA_ALLOC_CONF: the options of each release, their ranges, their syntax.
#include <algorithm>
#include <bit>
#include <charconv>
#include <compare>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/memory/allocator_profile.h"

namespace sim::memory {
namespace {

struct Release {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

// One piece of the setting with its place in it.
struct Token {
  std::string_view text;
  std::size_t offset = 0;
};

// Keys, values and the characters ":=,[]" by themselves; blanks separate and vanish.
std::vector<Token> tokenize(std::string_view conf) {
  constexpr std::string_view kSingle = ":=,[]";
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < conf.size();) {
    if (conf[i] == ' ' || conf[i] == '\t') {
      ++i;
      continue;
    }
    std::size_t n = 1;
    if (kSingle.find(conf[i]) == std::string_view::npos) {
      while (i + n < conf.size() && conf[i + n] != ' ' && conf[i + n] != '\t' &&
             kSingle.find(conf[i + n]) == std::string_view::npos) {
        ++n;
      }
    }
    tokens.push_back({conf.substr(i, n), i});
    i += n;
  }
  return tokens;
}

class SettingsParser {
 public:
  SettingsParser(const Named& conf, const AllocatorProfile& profile, Diagnostics& diagnostics,
                 const AllocatorSettings& base)
      : conf_(conf),
        profile_(profile),
        diagnostics_(diagnostics),
        settings_(base),
        tokens_(tokenize(conf.name)) {}

  std::optional<AllocatorSettings> parse();

 private:
  using Reader = void (SettingsParser::*)();
  struct Option {
    std::string_view name;
    Release since;
    Release before;  // first release without it
    Reader read;
  };
  static const Option kOptions[];

  void read_max_split_size();
  void read_max_non_split_rounding();
  void read_large_segment_size();
  void read_bypass_threshold();
  void read_gc_threshold();
  void read_fraction();
  void read_expandable();
  void read_divisions();
  void read_division_list();
  void read_backend();
  void skip_value();  // an option without effect on device memory

  const Option* find_option(const Token& key);
  bool at_end() const { return next_ >= tokens_.size(); }
  bool at(std::string_view text) const { return !at_end() && tokens_[next_].text == text; }
  bool at_assignment() const { return at(":") || at("="); }
  Token take();
  void skip_to_comma();
  std::optional<std::int64_t> take_integer();
  std::optional<double> take_number();
  std::optional<Bytes> take_mebibytes(std::int64_t least, bool inclusive);
  void error(const Token& token, std::string message, std::string hint = {});

  const Named& conf_;
  const AllocatorProfile& profile_;
  Diagnostics& diagnostics_;
  AllocatorSettings settings_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  Token key_;
  bool ok_ = true;
};

// First and last releases: CachingAllocatorConfig (1.13.1), CUDAAllocatorConfig (2.1 to 2.8),
// AcceleratorAllocatorConfig (2.9 on).
const SettingsParser::Option SettingsParser::kOptions[] = {
    {"max_split_size_mb", {1, 13}, {99, 0}, &SettingsParser::read_max_split_size},
    {"roundup_power2_divisions", {1, 13}, {99, 0}, &SettingsParser::read_divisions},
    {"roundup_bypass_threshold_mb", {1, 13}, {2, 0}, &SettingsParser::read_bypass_threshold},
    {"garbage_collection_threshold", {1, 13}, {99, 0}, &SettingsParser::read_gc_threshold},
    {"backend", {2, 0}, {99, 0}, &SettingsParser::read_backend},
    {"expandable_segments", {2, 1}, {99, 0}, &SettingsParser::read_expandable},
    {"release_lock_on_cudamalloc", {2, 1}, {99, 0}, &SettingsParser::skip_value},
    {"pinned_use_cuda_host_register", {2, 1}, {99, 0}, &SettingsParser::skip_value},
    {"pinned_num_register_threads", {2, 1}, {99, 0}, &SettingsParser::skip_value},
    {"max_non_split_rounding_mb", {2, 4}, {99, 0}, &SettingsParser::read_max_non_split_rounding},
    {"pinned_use_background_threads", {2, 4}, {99, 0}, &SettingsParser::skip_value},
    {"pinned_reserve_segment_size_mb", {2, 9}, {99, 0}, &SettingsParser::skip_value},
    {"graph_capture_record_stream_reuse", {2, 9}, {99, 0}, &SettingsParser::skip_value},
    {"large_segment_size_mb", {2, 9}, {99, 0}, &SettingsParser::read_large_segment_size},
    {"per_process_memory_fraction", {2, 9}, {99, 0}, &SettingsParser::read_fraction},
};

std::optional<AllocatorSettings> SettingsParser::parse() {
  while (!at_end()) {
    key_ = take();
    const Option* option = find_option(key_);
    if (option == nullptr) {
      skip_to_comma();
    } else if (!at_assignment()) {
      error(key_, fmt::format("'{}' has no value", key_.text), "write option:value");
      skip_to_comma();
    } else {
      take();
      (this->*option->read)();
      if (!at_end() && !at(",")) {
        if (ok_)
          error(tokens_[next_], fmt::format("',' expected before '{}'", tokens_[next_].text));
        skip_to_comma();
      }
    }
    if (at(",")) take();
  }
  if (!ok_) return std::nullopt;
  return settings_;
}

const SettingsParser::Option* SettingsParser::find_option(const Token& key) {
  const Release release{profile_.major, profile_.minor};
  std::vector<std::string> known;
  for (const Option& option : kOptions) {
    const bool here = option.since <= release && release < option.before;
    if (here) known.emplace_back(option.name);
    if (option.name != key.text) continue;
    if (here) return &option;
    error(
        key,
        fmt::format("allocator option '{}' does not exist in PyTorch {}", key.text, profile_.since),
        release < option.since
            ? fmt::format("it came with {}.{}", option.since.major, option.since.minor)
            : fmt::format("it went with {}.{}", option.before.major, option.before.minor));
    return nullptr;
  }
  const std::string near = nearest(key.text, known);
  error(key, fmt::format("unknown allocator option '{}'", key.text),
        near.empty() ? fmt::format("known options: {}", fmt::join(known, ", "))
                     : fmt::format("did you mean '{}'?", near));
  return nullptr;
}

void SettingsParser::read_max_split_size() {
  if (const auto size = take_mebibytes(20, profile_.split_minimum_inclusive)) {
    settings_.max_split_size = *size;
  }
}

void SettingsParser::read_max_non_split_rounding() {
  if (const auto size = take_mebibytes(20, profile_.split_minimum_inclusive)) {
    settings_.max_non_split_rounding = *size;
  }
}

// Must exceed kMinLargeAlloc (10 MiB), so that any request that shares a segment fits in it.
void SettingsParser::read_large_segment_size() {
  if (const auto size = take_mebibytes(10, false)) settings_.large_segment_size = *size;
}

void SettingsParser::read_bypass_threshold() {
  if (const auto size = take_mebibytes(0, true)) settings_.roundup_bypass_threshold = *size;
}

void SettingsParser::read_gc_threshold() {
  const Token token = at_end() ? key_ : tokens_[next_];
  const auto value = take_number();
  if (!value) return;
  if (!(*value > 0 && *value < 1)) {
    error(token, "garbage_collection_threshold must lie between 0 and 1, both excluded");
    return;
  }
  settings_.garbage_collection_threshold = *value;
}

void SettingsParser::read_fraction() {
  const Token token = at_end() ? key_ : tokens_[next_];
  const auto value = take_number();
  if (!value) return;
  if (!(*value >= 0 && *value <= 1)) {
    error(token, "per_process_memory_fraction must lie between 0 and 1");
    return;
  }
  settings_.per_process_memory_fraction = *value;
}

void SettingsParser::read_expandable() {
  const Token token = at_end() ? key_ : take();
  if (token.text != "True" && token.text != "False") {
    error(token, "expandable_segments must be True or False", "PyTorch takes these spellings only");
    return;
  }
  settings_.expandable_segments = token.text == "True";
}

void SettingsParser::read_divisions() {
  settings_.roundup_power2_divisions.fill(0);
  if (at("[")) {
    take();
    read_division_list();
    return;
  }
  const Token token = at_end() ? key_ : tokens_[next_];
  const auto value = take_integer();
  if (!value) return;
  if (!std::has_single_bit(static_cast<std::uint64_t>(*value))) {
    error(token, "roundup_power2_divisions must be a power of 2");
    return;
  }
  settings_.roundup_power2_divisions.fill(*value);
}

// "[256:1,512:2,>:8]": boundaries in MiB; the first value also holds below its boundary, ">" above
// the last one.
void SettingsParser::read_division_list() {
  auto& table = settings_.roundup_power2_divisions;
  if (profile_.major < 2) {
    error(key_, "PyTorch 1.13 takes one number here, no list");
    while (!at_end() && !at("]")) take();
    if (at("]")) take();
    return;
  }
  std::size_t last = 0;
  bool first = true;
  while (!at_end() && !at("]")) {
    const Token boundary = take();
    if (!at_assignment()) {
      error(boundary, "boundary:divisions expected in the list");
      return;
    }
    take();
    const Token token = at_end() ? boundary : tokens_[next_];
    const auto divisions = take_integer();
    if (!divisions) return;
    if (*divisions != 0 && !std::has_single_bit(static_cast<std::uint64_t>(*divisions))) {
      error(token, "divisions must be 0 or a power of 2");
      return;
    }
    if (boundary.text == ">") {
      for (std::size_t i = last + (profile_.divisions_overwrite_last ? 0 : 1); i < table.size();
           ++i) {
        table[i] = *divisions;
      }
    } else {
      std::uint64_t mebibytes = 0;
      const char* end = boundary.text.data() + boundary.text.size();
      const auto [after, failed] = std::from_chars(boundary.text.data(), end, mebibytes);
      if (failed != std::errc{} || after != end || !std::has_single_bit(mebibytes)) {
        error(boundary, "a boundary must be a power of 2 (MiB) or '>'");
        return;
      }
      const auto index =
          std::min(static_cast<std::size_t>(std::countr_zero(mebibytes)), table.size() - 1);
      for (std::size_t i = 0; first && i < index; ++i) table[i] = *divisions;
      table[index] = *divisions;
      first = false;
      last = index;
    }
    if (at(",")) take();
  }
  if (at_end()) {
    error(key_, "the list has no closing ']'");
    return;
  }
  take();
}

void SettingsParser::read_backend() {
  const Token token = at_end() ? key_ : take();
  if (token.text == "native") return;
  error(token,
        token.text == "cudaMallocAsync" ? std::string("backend cudaMallocAsync is not modelled")
                                        : fmt::format("unknown allocator backend '{}'", token.text),
        "backend:native is the modelled one");
}

void SettingsParser::skip_value() {
  if (at_end() || at(",")) {
    error(key_, fmt::format("'{}' has no value", key_.text));
    return;
  }
  take();
}

Token SettingsParser::take() { return tokens_[next_++]; }

void SettingsParser::skip_to_comma() {
  int depth = 0;
  while (!at_end() && (depth > 0 || !at(","))) {
    if (at("[")) ++depth;
    if (at("]")) --depth;
    take();
  }
}

std::optional<std::int64_t> SettingsParser::take_integer() {
  if (at_end() || at(",") || at("]")) {
    error(key_, fmt::format("'{}' has no value", key_.text));
    return std::nullopt;
  }
  const Token token = take();
  std::int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [after, failed] = std::from_chars(token.text.data(), end, value);
  if (failed != std::errc{} || after != end || value < 0) {
    error(token, fmt::format("'{}' is no whole number", token.text));
    return std::nullopt;
  }
  return value;
}

std::optional<double> SettingsParser::take_number() {
  if (at_end() || at(",") || at("]")) {
    error(key_, fmt::format("'{}' has no value", key_.text));
    return std::nullopt;
  }
  const Token token = take();
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [after, failed] = std::from_chars(token.text.data(), end, value);
  if (failed != std::errc{} || after != end) {
    error(token, fmt::format("'{}' is no number", token.text));
    return std::nullopt;
  }
  return value;
}

std::optional<Bytes> SettingsParser::take_mebibytes(std::int64_t least, bool inclusive) {
  const Token token = at_end() ? key_ : tokens_[next_];
  const auto value = take_integer();
  if (!value) return std::nullopt;
  if (*value < least || (*value == least && !inclusive)) {
    error(token,
          fmt::format("{} must be {} {}", key_.text, inclusive ? "at least" : "more than", least));
    return std::nullopt;
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // 1 EiB: beyond any device
  return Bytes{std::min(*value, kMost) << 20};
}

void SettingsParser::error(const Token& token, std::string message, std::string hint) {
  Span at = conf_.at;
  if (at.column > 0) at.column += static_cast<int>(token.offset);
  at.length = std::max(1, static_cast<int>(token.text.size()));
  diagnostics_.error(at, std::move(message), std::move(hint));
  ok_ = false;
}

}  // namespace

std::optional<AllocatorSettings> parse_allocator_settings(const Named& conf,
                                                          const AllocatorProfile& profile,
                                                          Diagnostics& diagnostics,
                                                          const AllocatorSettings& base) {
  return SettingsParser(conf, profile, diagnostics, base).parse();
}

std::string to_text(const AllocatorSettings& settings) {
  const AllocatorSettings defaults;
  std::vector<std::string> parts;
  const auto mebibytes = [&](std::string_view name, Bytes value, Bytes otherwise) {
    if (value != otherwise) parts.push_back(fmt::format("{}:{}", name, value.count >> 20));
  };
  mebibytes("max_split_size_mb", settings.max_split_size, defaults.max_split_size);
  mebibytes("max_non_split_rounding_mb", settings.max_non_split_rounding,
            defaults.max_non_split_rounding);
  mebibytes("large_segment_size_mb", settings.large_segment_size, defaults.large_segment_size);
  mebibytes("roundup_bypass_threshold_mb", settings.roundup_bypass_threshold,
            defaults.roundup_bypass_threshold);
  const auto& table = settings.roundup_power2_divisions;
  if (table != defaults.roundup_power2_divisions) {
    bool uniform = true;
    std::vector<std::string> list;
    for (std::size_t i = 0; i < table.size(); ++i) {
      uniform = uniform && table[i] == table[0];
      list.push_back(fmt::format("{}:{}", std::int64_t{1} << i, table[i]));
    }
    parts.push_back(uniform ? fmt::format("roundup_power2_divisions:{}", table[0])
                            : fmt::format("roundup_power2_divisions:[{}]", fmt::join(list, ",")));
  }
  if (settings.garbage_collection_threshold > 0) {
    parts.push_back(
        fmt::format("garbage_collection_threshold:{}", settings.garbage_collection_threshold));
  }
  if (settings.expandable_segments) parts.emplace_back("expandable_segments:True");
  if (settings.per_process_memory_fraction) {
    parts.push_back(
        fmt::format("per_process_memory_fraction:{}", *settings.per_process_memory_fraction));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace sim::memory
