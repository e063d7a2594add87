#include "sim/base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>

#include "sim/base/files.h"
#include "sim/base/text.h"

namespace sim {
namespace {

constexpr std::size_t kLineWidth = 100;  // of the source line shown, without its line number
constexpr std::size_t kTabWidth = 4;
constexpr std::size_t kMostBytesPerCharacter = 4;
constexpr std::size_t kMostShown = 100;  // diagnostics of one run
constexpr std::size_t kMostNamesBesideNearest = 24;
constexpr std::size_t kLongestName = 100;  // that is worth comparing by edit distance

constexpr std::string_view kBold = "\033[1m", kRed = "\033[1;31m", kMagenta = "\033[1;35m",
                           kCyan = "\033[1;36m", kGreen = "\033[1;32m", kReset = "\033[0m";

std::string paint(std::string text, std::string_view code, bool colour) {
  return colour ? fmt::format("{}{}{}", code, text, kReset) : std::move(text);
}

std::string place(const Span& at) {
  if (!at.file) return "command line";
  const std::string path = printable(at.file->path);
  if (at.line <= 0) return path;
  return fmt::format("{}:{}:{}", path, at.line, std::max(at.column, 1));
}

// Line `number` (from 1) without its line break; empty past the end.
std::string_view find_line(std::string_view text, int number) {
  for (int i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// A source line and what stands below it.
struct Excerpt {
  std::string line;
  std::string carets;
};

Excerpt make_excerpt(std::string_view line, const Span& at) {
  const auto first = static_cast<std::size_t>(std::max(at.column, 1) - 1);
  const std::size_t past = first + static_cast<std::size_t>(std::max(at.length, 1));
  const std::size_t begin = first < kLineWidth ? 0 : first - kLineWidth / 2;
  // A line may be many megabytes long: only the characters that can be shown are taken apart.
  const std::vector<std::string> characters =
      printable_characters(line.substr(0, (begin + kLineWidth + 1) * kMostBytesPerCharacter));

  Excerpt out{begin > 0 ? "..." : "", ""};
  std::size_t column = out.line.size(), caret = column, caret_end = 0;
  std::size_t i = begin;
  for (; i < characters.size() && column < kLineWidth; ++i) {
    if (i == first) caret = column;
    const bool tab = characters[i] == "\\t";
    out.line += tab ? std::string(kTabWidth - column % kTabWidth, ' ') : characters[i];
    column = count_characters(out.line);
    if (i < past) caret_end = column;
  }
  if (i < characters.size()) out.line += "...";
  if (first >= i) caret = column + (first - i);
  const std::size_t underlined = std::max(caret_end, caret + 1) - caret;
  out.carets = std::string(caret, ' ') + '^' + std::string(underlined - 1, '~');
  out.line.erase(out.line.find_last_not_of(' ') + 1);
  return out;
}

std::string render_source(const Span& at, bool colour) {
  if (!at.file || at.line <= 0) return {};
  const Excerpt excerpt = make_excerpt(find_line(at.file->text, at.line), at);
  return fmt::format("{:>5} |{}{}\n{:>5} | {}\n", at.line, excerpt.line.empty() ? "" : " ",
                     excerpt.line, "", paint(excerpt.carets, kGreen, colour));
}

std::string render_heading(const Diagnostic& d, bool colour) {
  constexpr std::string_view words[] = {"error", "warning", "note"};
  constexpr std::string_view codes[] = {kRed, kMagenta, kCyan};
  const auto severity = static_cast<std::size_t>(d.severity);
  return fmt::format("{} {} {}\n", paint(place(d.at) + ":", kBold, colour),
                     paint(fmt::format("{}:", words[severity]), codes[severity], colour),
                     printable(d.message));
}

std::string render_hint(const Diagnostic& d, bool colour) {
  if (d.hint.empty()) return {};
  return fmt::format("{} {}\n", paint("help:", kCyan, colour), printable(d.hint, 8000));
}

// File by file, by line and column in each; what blames a whole file comes first.
std::vector<const Diagnostic*> in_file_order(const std::vector<Diagnostic>& all) {
  std::vector<const SourceFile*> files;
  const auto file_of = [&](const Diagnostic* d) {
    return std::find(files.begin(), files.end(), d->at.file.get()) - files.begin();
  };
  std::vector<const Diagnostic*> ordered;
  for (const Diagnostic& d : all) {
    ordered.push_back(&d);
    if (file_of(&d) == std::ssize(files)) files.push_back(d.at.file.get());
  }
  std::stable_sort(ordered.begin(), ordered.end(), [&](const Diagnostic* a, const Diagnostic* b) {
    return std::tuple(file_of(a), a->at.line, a->at.column) <
           std::tuple(file_of(b), b->at.line, b->at.column);
  });
  return ordered;
}

// Upper case and '-' against '_' are slips of the same name.
char fold(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Damerau-Levenshtein: insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = fold(a[i - 1]) == fold(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]);
      if (swapped) now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, now);
  }
  return last[b.size()];
}

}  // namespace

Diagnostic& Diagnostics::add(Severity severity, Span at, std::string message, std::string hint) {
  if (severity == Severity::error) ++errors_;
  items_.push_back({severity, std::move(at), std::move(message), std::move(hint), {}});
  return items_.back();
}

Diagnostic& Diagnostics::error(Span at, std::string message, std::string hint) {
  return add(Severity::error, std::move(at), std::move(message), std::move(hint));
}

Diagnostic& Diagnostics::warning(Span at, std::string message, std::string hint) {
  return add(Severity::warning, std::move(at), std::move(message), std::move(hint));
}

std::string render(const Diagnostic& diagnostic, bool colour) {
  std::string out = render_heading(diagnostic, colour) + render_source(diagnostic.at, colour) +
                    render_hint(diagnostic, colour);
  for (const Diagnostic& note : diagnostic.notes) {
    out += render_heading(note, colour) + render_hint(note, colour);
  }
  return out;
}

std::string render(const Diagnostics& diagnostics, bool colour) {
  const std::vector<const Diagnostic*> all = in_file_order(diagnostics.all());
  const std::size_t shown = std::min(all.size(), kMostShown);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) out += render(*all[i], colour);
  if (shown < all.size()) out += fmt::format("... and {} more\n", all.size() - shown);
  return out;
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  if (name.size() > kLongestName) return best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t distance = edit_distance(name, candidate);
    // A name changed in every letter is another name.
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void report_unknown_name(std::string_view kind, const Named& named,
                         const std::vector<std::string>& known, Diagnostics& diagnostics) {
  const std::string near = nearest(named.name, known);
  std::string hint = near.empty() ? "" : fmt::format("did you mean '{}'?", near);
  if (known.empty()) {
    hint = "none is known";
  } else if (near.empty() || known.size() <= kMostNamesBesideNearest) {
    hint += fmt::format("{}known: {}", near.empty() ? "" : " ", join(known));
  }
  diagnostics.error(named.at, fmt::format("unknown {} {}", kind, in_quotes(named.name)), hint);
}

std::shared_ptr<const SourceFile> read_source_file(const std::string& path, const Span& blame,
                                                   Diagnostics& diagnostics,
                                                   std::size_t limit_bytes) {
  // Blaming the file itself where nothing else names it keeps the usual `path: error:` form.
  const Span at = blame.file ? blame : Span{std::make_shared<SourceFile>(SourceFile{path, {}})};
  const auto refuse = [&](std::string_view why) {
    diagnostics.error(at, blame.file ? fmt::format("cannot read {}: {}", in_quotes(path), why)
                                     : fmt::format("cannot read the file: {}", why));
    return nullptr;
  };
  if (path.empty()) {
    diagnostics.error(blame, "the name of a file is expected, not nothing");
    return nullptr;
  }
  if (path == "-") return refuse("stdin cannot be an input; name a file");
  if (const std::string_view why = why_not_regular(path); !why.empty()) return refuse(why);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(errno != 0 ? std::strerror(errno) : "it cannot be opened");

  std::string text;
  std::string buffer(1u << 16, '\0');
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    text.append(buffer, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > limit_bytes) {
      return refuse(fmt::format("it is larger than {} bytes",
                                group_digits(static_cast<std::int64_t>(limit_bytes))));
    }
  }
  if (in.bad()) return refuse("reading failed");
  return std::make_shared<SourceFile>(SourceFile{path, std::move(text)});
}

}  // namespace sim
