#include "sim/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace sim {
namespace {

constexpr char32_t kNotACharacter = 0xffffffff;

// Length of the well-formed UTF-8 sequence at `i`, and its code point; length 1 and kNotACharacter
// where the byte starts none (overlong forms, surrogates and truncated tails included).
std::pair<std::size_t, char32_t> decode(std::string_view s, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
  const unsigned char lead = byte(i);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || i + length > s.size()) return {1, kNotACharacter};
  char32_t code = lead & (0x7fu >> length);
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return {1, kNotACharacter};
    code = code << 6 | (byte(i + k) & 0x3fu);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < smallest[length] || code > 0x10ffff || surrogate) return {1, kNotACharacter};
  return {length, code};
}

// Characters that move the cursor, reorder the line or cannot be seen.
bool is_unprintable(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

}  // namespace

std::vector<std::string> printable_characters(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < text.size();) {
    const auto [length, code] = decode(text, i);
    if (code == kNotACharacter) {
      all.push_back(fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i])));
    } else if (is_unprintable(code)) {
      all.push_back(code == '\n'   ? "\\n"
                    : code == '\r' ? "\\r"
                    : code == '\t' ? "\\t"
                    : code < 0x80  ? fmt::format("\\x{:02x}", static_cast<unsigned>(code))
                                   : fmt::format("\\u{:04x}", static_cast<unsigned>(code)));
    } else {
      all.emplace_back(text.substr(i, length));
    }
    i += length;
  }
  return all;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  // No character takes more than four bytes, so the rest of a huge text need not be looked at.
  const bool huge = text.size() / 4 > limit;
  const std::vector<std::string> all =
      printable_characters(huge ? text.substr(0, 4 * limit + 4) : text);
  for (std::size_t i = 0; i < std::min(limit, all.size()); ++i) out += all[i];
  return all.size() > limit ? out + "..." : out;
}

std::string in_quotes(std::string_view text) { return fmt::format("'{}'", printable(text, 64)); }

std::size_t count_characters(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); ++n) i += decode(text, i).first;
  return n;
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto [length, code] = decode(text, i);
    if (code == kNotACharacter) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string group_digits(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out, line = margin;
  std::size_t used = indent;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    const std::size_t width = count_characters(word);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (used > indent && used + 1 + width > columns) {
      out += line + "\n";
      line = margin;
      used = indent;
    }
    if (used > indent) {
      line += ' ';
      ++used;
    }
    line += word;
    used += width;
  }
  return out + line + "\n";
}

TextTable::TextTable(std::vector<std::string> header, std::vector<bool> right)
    : rows_{std::move(header)}, right_(std::move(right)) {}

void TextTable::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

std::string TextTable::text(int indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], count_characters(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(static_cast<std::size_t>(std::max(indent, 0)), ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - count_characters(row[i]), ' ');
      const bool right = i < right_.size() && right_[i];
      line += (i > 0 ? "  " : "") + (right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace sim
