// A catalog: one ordered, named, constexpr table of everything of a kind (architectures, trainers,
// collectives, ...). Entries are listed by hand in the kind's catalog.cpp; a test compares the list
// with the folder. Entry must have `std::string_view name, description`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"

namespace sim {

template <class Entry>
class Catalog {
 public:
  constexpr Catalog(std::string_view kind, std::span<const Entry* const> entries)
      : kind_(kind), entries_(entries) {}

  constexpr std::string_view kind() const { return kind_; }
  constexpr std::span<const Entry* const> entries() const { return entries_; }

  // nullptr where no entry has that name.
  constexpr const Entry* find(std::string_view name) const {
    for (const Entry* entry : entries_) {
      if (entry->name == name) return entry;
    }
    return nullptr;
  }

  // As above, and files an error with the nearest name and the list of known ones.
  const Entry* find(const Named& named, Diagnostics& diagnostics) const {
    if (const Entry* entry = find(named.name)) return entry;
    report_unknown_name(kind_, named, names(), diagnostics);
    return nullptr;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry* entry : entries_) all.emplace_back(entry->name);
    return all;
  }

 private:
  std::string_view kind_;
  std::span<const Entry* const> entries_;
};

}  // namespace sim
