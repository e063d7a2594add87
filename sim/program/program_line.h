// One line of a program's text, read word by word. The first mistake of a line is filed with its
// place; what is read after it is ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/base/tensor.h"
#include "sim/base/units.h"

namespace sim::program {

class ProgramLine {
 public:
  // Cuts `text`, line `number` of `file`, into words and quoted strings; '#' begins a comment.
  ProgramLine(std::shared_ptr<const SourceFile> file, int number, std::string_view text,
              Diagnostics& diagnostics);

  bool empty() const { return words_.empty(); }
  bool failed() const { return failed_; }
  bool at_end() const { return next_ == words_.size(); }
  std::string_view peek() const;  // empty at the end and before a quoted string

  std::string word(std::string_view what);    // unquoted
  std::string quoted(std::string_view what);  // without its quotes and escapes
  bool accept(std::string_view word);         // takes the next word if it is this one
  void expect(std::string_view word);
  std::uint32_t number(std::string_view what);
  Bytes bytes();
  Duration duration();
  // The number of an id such as t12. `count` are declared; 0 after a mistake.
  std::uint32_t id(char letter, std::size_t count);
  // An id that is being declared: it must be `count` itself.
  void new_id(char letter, std::size_t count);
  TensorType tensor_type();  // bf16[2048,4096]
  // One of the first `count` values of an enumeration.
  template <class Enum>
  Enum choice(std::string_view what, int count, std::string_view (*name)(Enum)) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.emplace_back(name(static_cast<Enum>(i)));
    return static_cast<Enum>(index_of(what, names));
  }
  // Of the next word in `names`, with a suggestion if it is none of them.
  int index_of(std::string_view what, const std::vector<std::string>& names);
  // Nothing may follow.
  void end();

  // At the word read last.
  void fail(std::string message, std::string hint = {});

 private:
  struct Word {
    std::string text;
    bool quoted = false;
    int column = 1, length = 1;
  };
  void split(std::string_view text);
  std::size_t read_quoted(std::string_view text, std::size_t at, Word& word);
  const Word* take(std::string_view what, bool quoted);

  std::shared_ptr<const SourceFile> file_;
  int number_;
  Diagnostics* diagnostics_;
  std::vector<Word> words_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

}  // namespace sim::program
