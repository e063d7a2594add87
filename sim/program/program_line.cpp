#include "sim/program/program_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/text.h"
#include "sim/base/units_text.h"

namespace sim::program {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number n{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

// Tensors larger than any machine's memory are refused, so that sizes never overflow.
constexpr double kMostElements = 1e15;

}  // namespace

ProgramLine::ProgramLine(std::shared_ptr<const SourceFile> file, int number, std::string_view text,
                         Diagnostics& diagnostics)
    : file_(std::move(file)), number_(number), diagnostics_(&diagnostics) {
  split(text);
}

void ProgramLine::split(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && !failed_) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    if (text[at] == '#') return;
    Word word;
    word.column = static_cast<int>(count_characters(text.substr(0, at))) + 1;
    const std::size_t begin = at;
    if (text[at] == '"') {
      at = read_quoted(text, at, word);
    } else {
      while (at < text.size() && !is_blank(text[at]) && text[at] != '#') ++at;
      word.text = text.substr(begin, at - begin);
    }
    word.length = static_cast<int>(count_characters(text.substr(begin, at - begin)));
    words_.push_back(std::move(word));
  }
}

// Returns where the string ends; `at` is its first quote.
std::size_t ProgramLine::read_quoted(std::string_view text, std::size_t at, Word& word) {
  word.quoted = true;
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] != '\\') {
      word.text += text[at];
    } else if (text.substr(at + 1, 1) == "x" && at + 3 < text.size()) {
      unsigned code = 0;
      const char* digits = text.data() + at + 2;
      if (std::from_chars(digits, digits + 2, code, 16).ptr != digits + 2) break;
      word.text += static_cast<char>(code);
      at += 3;
    } else if (at + 1 < text.size()) {
      word.text += text[++at];
    }
  }
  if (at < text.size() && text[at] == '"') return at + 1;
  words_.push_back(word);
  next_ = words_.size();
  fail("the string does not end");
  return text.size();
}

std::string_view ProgramLine::peek() const {
  return at_end() || words_[next_].quoted ? std::string_view{} : words_[next_].text;
}

const ProgramLine::Word* ProgramLine::take(std::string_view what, bool quoted) {
  if (failed_) return nullptr;
  if (at_end()) {
    fail(fmt::format("{} is missing at the end of the line", what));
    return nullptr;
  }
  const Word& word = words_[next_++];
  if (word.quoted == quoted) return &word;
  fail(fmt::format("{} must {}stand in quotes", what, quoted ? "" : "not "));
  return nullptr;
}

std::string ProgramLine::word(std::string_view what) {
  const Word* word = take(what, false);
  return word != nullptr ? word->text : std::string{};
}

std::string ProgramLine::quoted(std::string_view what) {
  const Word* word = take(what, true);
  return word != nullptr ? word->text : std::string{};
}

bool ProgramLine::accept(std::string_view word) {
  if (failed_ || peek() != word) return false;
  ++next_;
  return true;
}

void ProgramLine::expect(std::string_view word) {
  if (accept(word)) return;
  take(fmt::format("'{}'", word), false);
  fail(fmt::format("expected '{}'", word));
}

std::uint32_t ProgramLine::number(std::string_view what) {
  const Word* word = take(what, false);
  if (word == nullptr) return 0;
  const auto n = parse_number<std::uint32_t>(word->text);
  if (!n) fail(fmt::format("{} is not {}", in_quotes(word->text), what));
  return n.value_or(0);
}

Bytes ProgramLine::bytes() {
  const Word* word = take("a size", false);
  if (word == nullptr) return {};
  const auto size = parse_bytes(word->text);
  if (!size) fail(fmt::format("{} is not a size", in_quotes(word->text)), "write 64MiB or 512B");
  return size.value_or(Bytes{});
}

Duration ProgramLine::duration() {
  const Word* word = take("a time", false);
  if (word == nullptr) return {};
  const auto time = parse_duration(word->text);
  if (!time) fail(fmt::format("{} is not a time", in_quotes(word->text)), "write 12us or 3ms");
  return time.value_or(Duration{});
}

std::uint32_t ProgramLine::id(char letter, std::size_t count) {
  const std::string what = fmt::format("an id such as {}0", letter);
  const Word* word = take(what, false);
  if (word == nullptr) return 0;
  const std::string_view text = word->text;
  const auto n = text.empty() || text.front() != letter
                     ? std::nullopt
                     : parse_number<std::uint32_t>(text.substr(1));
  if (!n) {
    fail(fmt::format("{} is not {}", in_quotes(text), what));
  } else if (*n >= count) {
    fail(fmt::format("{} is not declared", text));
  } else {
    return *n;
  }
  return 0;
}

void ProgramLine::new_id(char letter, std::size_t count) {
  const std::string expected = fmt::format("{}{}", letter, count);
  const std::string found = word(expected);
  if (found != expected) fail(fmt::format("the next id here is {}", expected));
}

TensorType ProgramLine::tensor_type() {
  const Word* word = take("a tensor type", false);
  if (word == nullptr) return {};
  const std::string_view text = word->text;
  const std::size_t open = text.find('[');
  const auto bad = [&] {
    fail(fmt::format("{} is not a tensor type", in_quotes(text)), "write bf16[2048,4096]");
    return TensorType{};
  };
  if (open == std::string_view::npos || text.back() != ']') return bad();
  TensorType type;
  constexpr int kDTypes = static_cast<int>(DType::nf4) + 1;
  int dtype = 0;
  while (dtype < kDTypes && sim::to_text(static_cast<DType>(dtype)) != text.substr(0, open))
    ++dtype;
  if (dtype == kDTypes) return bad();
  type.dtype = static_cast<DType>(dtype);
  std::string_view sizes = text.substr(open + 1, text.size() - open - 2);
  double elements = 1;
  while (!sizes.empty()) {
    const std::size_t comma = std::min(sizes.find(','), sizes.size());
    const auto size = parse_number<std::int64_t>(sizes.substr(0, comma));
    if (!size || *size < 0 || type.shape.rank == Shape::kMaxRank) return bad();
    // A size of 0 must not hide the others' product.
    elements *= static_cast<double>(std::max<std::int64_t>(*size, 1));
    if (elements > kMostElements) return bad();
    type.shape.sizes[static_cast<std::size_t>(type.shape.rank++)] = *size;
    sizes.remove_prefix(std::min(comma + 1, sizes.size()));
  }
  return type;
}

int ProgramLine::index_of(std::string_view what, const std::vector<std::string>& names) {
  const Word* word = take(what, false);
  if (word == nullptr) return 0;
  const auto found = std::find(names.begin(), names.end(), word->text);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::string near = nearest(word->text, names);
  fail(fmt::format("unknown {} {}", what, in_quotes(word->text)),
       near.empty() ? "one of " + join(names) : fmt::format("did you mean '{}'?", near));
  return 0;
}

void ProgramLine::end() {
  if (failed_ || at_end()) return;
  const std::string text = words_[next_++].text;
  fail(fmt::format("{} is too much here", in_quotes(text)));
}

void ProgramLine::fail(std::string message, std::string hint) {
  if (failed_) return;
  failed_ = true;
  const std::size_t at = next_ > 0 ? next_ - 1 : 0;
  const Word word = at < words_.size() ? words_[at] : Word{};
  diagnostics_->error({file_, number_, word.column, word.length}, std::move(message),
                      std::move(hint));
}

}  // namespace sim::program
