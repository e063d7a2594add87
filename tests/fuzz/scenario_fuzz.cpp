// Any bytes as a scenario: read or refused, and the complaint can be printed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/scenario/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sim;
  auto file = std::make_shared<SourceFile>(
      SourceFile{"fuzz.yaml", std::string(reinterpret_cast<const char*>(data), size)});
  Diagnostics diagnostics;
  const auto scenario = read_scenario(std::move(file), default_data_roots(), {}, diagnostics);
  if (scenario.has_value() == diagnostics.has_errors()) __builtin_trap();
  render(diagnostics);
  return 0;
}
