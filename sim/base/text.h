// Text for people: aligned tables, grouped digits, and input that is safe to print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sim {

// 6738415616 -> "6,738,415,616"
std::string group_digits(std::int64_t n);

// {"a", "b"} -> "a, b"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

// Text of a user's file made safe for a terminal: control, invisible and direction characters and
// bytes that are not UTF-8 are escaped (\t, \x1b, \u202e); more than `limit` characters end in
// "...".
std::string printable(std::string_view text, std::size_t limit = 2000);
// The same as one string per character.
std::vector<std::string> printable_characters(std::string_view text);
// 'text', printable and short enough for a message.
std::string in_quotes(std::string_view text);

// Code points of UTF-8 text; a byte that belongs to none counts as one.
std::size_t count_characters(std::string_view text);
// Where the first byte stands that is not UTF-8; npos = nowhere.
std::size_t find_invalid_utf8(std::string_view text);

// Words in lines of at most `columns`, broken at blanks, each line after `indent` blanks and ending
// in '\n'; a word longer than the line stays whole.
std::string wrap(std::string_view text, std::size_t columns, std::size_t indent = 0);

// Columns padded to the widest cell (counted in code points); `right` says which are right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header, std::vector<bool> right = {});
  void add(std::vector<std::string> row);
  // Each line ends in '\n'; no trailing blanks.
  std::string text(int indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

}  // namespace sim
