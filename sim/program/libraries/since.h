// A fact by release: the value of the newest row that is not newer than the release asked for.
#pragma once

#include <initializer_list>
#include <string_view>

#include "sim/scenario/job_spec.h"

namespace sim::program {

template <class T>
struct Since {
  Release from;
  T value;
};

// Rows in ascending order; a release before the first row takes the first.
template <class T>
T by_release(const Release& release, std::initializer_list<Since<T>> rows) {
  T value = rows.begin()->value;
  for (const Since<T>& row : rows) {
    if (row.from <= release) value = row.value;
  }
  return value;
}

}  // namespace sim::program
