// Text for people: aligned tables, grouped digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

// 6738415616 -> "6,738,415,616"
std::string group_digits(std::int64_t n);

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
