#include "sim/report/pickle.h"

#include <limits>
#include <utility>

namespace sim::report {

namespace {

constexpr char kProto = '\x80', kEmptyDict = '}', kEmptyList = ']', kMark = '(', kSetItems = 'u',
               kAppends = 'e', kTuple = 't', kBinUnicode = 'X', kBinInt = 'J', kLong1 = '\x8a',
               kNewTrue = '\x88', kNewFalse = '\x89', kLongBinPut = 'r', kLongBinGet = 'j',
               kStop = '.';

}  // namespace

Pickle::Pickle() {
  op(kProto);
  op('\x02');
}

void Pickle::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void Pickle::begin_dict() {
  op(kEmptyDict);
  op(kMark);
}

void Pickle::end_dict() { op(kSetItems); }

void Pickle::begin_list() {
  op(kEmptyList);
  op(kMark);
}

void Pickle::end_list() { op(kAppends); }

void Pickle::begin_tuple() { op(kMark); }

void Pickle::end_tuple() { op(kTuple); }

void Pickle::text(std::string_view value) {
  const auto known = texts_.find(std::string(value));
  if (known != texts_.end()) {
    recall(known->second);
    return;
  }
  op(kBinUnicode);
  little_endian(value.size(), 4);
  out_ += value;
  texts_.emplace(value, remember());
}

void Pickle::number(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    op(kBinInt);
    little_endian(static_cast<std::uint64_t>(value), 4);
    return;
  }
  op(kLong1);
  op('\x08');
  little_endian(static_cast<std::uint64_t>(value), 8);
}

void Pickle::truth(bool value) { op(value ? kNewTrue : kNewFalse); }

std::uint32_t Pickle::remember() {
  op(kLongBinPut);
  little_endian(next_memo_, 4);
  return next_memo_++;
}

void Pickle::recall(std::uint32_t memo) {
  op(kLongBinGet);
  little_endian(memo, 4);
}

std::string Pickle::finish() && {
  op(kStop);
  return std::move(out_);
}

}  // namespace sim::report
