// A writer of Python pickles, protocol 2, of dicts, lists, tuples, strings, whole numbers and
// booleans: what PyTorch's own C++ pickler uses for memory snapshots, and what its memory_viz page
// reads. Strings that come again are written once.
//
//   Pickle p;
//   p.begin_dict();
//   p.key("segments"); p.begin_list(); ... p.end_list();
//   p.end_dict();
//   std::string bytes = std::move(p).finish();
//
// Opcodes: Python's Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sim::report {

class Pickle {
 public:
  Pickle();
  void begin_dict();
  void end_dict();
  void begin_list();
  void end_list();
  void begin_tuple();
  void end_tuple();
  void key(std::string_view name) { text(name); }
  void text(std::string_view value);  // UTF-8
  void number(std::int64_t value);
  void truth(bool value);
  // Puts the value that was written last into the memo, and writes it again.
  std::uint32_t remember();
  void recall(std::uint32_t memo);
  std::string finish() &&;

 private:
  void op(char code) { out_ += code; }
  void little_endian(std::uint64_t value, int bytes);

  std::string out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::uint32_t next_memo_ = 0;
};

}  // namespace sim::report
