// What is wrong with an input, and where. Readers file into a Diagnostics sink and go on, so one
// run shows every mistake; the command line renders the list and exits 2.
//
//   scenarios/a.yaml:17:5: error: unknown key 'recompute_granularty' in job
//      17 |     recompute_granularty: full
//         |     ^~~~~~~~~~~~~~~~~~~~
//   help: did you mean 'recompute_granularity'?
//   models/x/config.json:19:28: note: num_attention_heads is set here
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

// The text of one input file, kept so that a diagnostic can show its lines.
struct SourceFile {
  std::string path;  // as the user named it
  std::string text;
};

// A place in a source file. `line` and `column` count from 1 (columns in code points); 0 = the
// whole file. `length` is the number of code points to underline, at least 1. No file: a
// command-line value.
struct Span {
  std::shared_ptr<const SourceFile> file;
  int line = 0;
  int column = 0;
  int length = 1;
};

// A value and where it was written, so that a later check can still blame the right line.
template <class T>
struct Located {
  T value{};
  Span at;
};

// A name of an open set, resolved by the floor that owns its catalog.
struct Named {
  std::string name;
  Span at;
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  Span at;
  std::string message;
  std::string hint;               // one line without "help:"; empty = none
  std::vector<Diagnostic> notes;  // related places
};

class Diagnostics {
 public:
  Diagnostic& error(Span at, std::string message, std::string hint = {});
  Diagnostic& warning(Span at, std::string message, std::string hint = {});
  bool has_errors() const { return errors_ > 0; }
  std::size_t error_count() const { return errors_; }
  const std::vector<Diagnostic>& all() const { return items_; }

 private:
  Diagnostic& add(Severity severity, Span at, std::string message, std::string hint);
  std::vector<Diagnostic> items_;
  std::size_t errors_ = 0;
};

// The whole list as text, file by file in the order of their first complaint and by line in each,
// tabs expanded, long lines clipped around the caret.
std::string render(const Diagnostics& diagnostics, bool colour = false);
std::string render(const Diagnostic& diagnostic, bool colour = false);

// The candidate nearest to `name` by edit distance, or empty if none is near enough to suggest.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// "unknown <kind> '<name>'", with the nearest name and the known ones as hint (of many, the nearest
// alone).
void report_unknown_name(std::string_view kind, const Named& named,
                         const std::vector<std::string>& known, Diagnostics& diagnostics);

// Reads a whole file. On failure files an error at `blame` and returns null.
// Refuses directories, and files over `limit_bytes`.
std::shared_ptr<const SourceFile> read_source_file(const std::string& path, const Span& blame,
                                                   Diagnostics& diagnostics,
                                                   std::size_t limit_bytes = 64u << 20);

}  // namespace sim
