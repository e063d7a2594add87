// Golden files: the expected text stands beside the test. With REHEARSE_ACCEPT=1 in the environment
// (tools/accept) the file is rewritten instead; the diff is then reviewed like code.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/support/catch.h"

namespace sim::testing {

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// "" where equal, else the first line that differs, both ways.
inline std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream want(expected), have(actual);
  std::string a, b;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(want, a));
    const bool more_b = static_cast<bool>(std::getline(have, b));
    if (!more_a && !more_b) return "";
    if (more_a && more_b && a == b) continue;
    return "line " + std::to_string(line) + "\n  expected: " + (more_a ? a : "(end)") +
           "\n  actual:   " + (more_b ? b : "(end)");
  }
}

// `path` is relative to the source tree.
inline void require_golden(const std::string& path, const std::string& actual) {
  const std::string full = std::string(SIM_SOURCE_DIR) + "/" + path;
  const char* accept = std::getenv("REHEARSE_ACCEPT");
  if (accept != nullptr && *accept != '\0') {
    std::ofstream(full, std::ios::binary) << actual;
    return;
  }
  const std::string difference = first_difference(read_text(full), actual);
  INFO(path << ", " << difference);
  CHECK(difference.empty());
}

}  // namespace sim::testing
