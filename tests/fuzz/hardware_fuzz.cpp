// Any bytes as a GPU or node file: read or refused, and the complaint can be printed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/scenario/config_reader.h"
#include "sim/scenario/hardware_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sim;
  const auto file = std::make_shared<SourceFile>(
      SourceFile{"fuzz.yaml", std::string(reinterpret_cast<const char*>(data), size)});
  for (const bool as_gpu : {true, false}) {
    Diagnostics diagnostics;
    ReadContext context{diagnostics};
    const bool read =
        as_gpu ? read_gpu(file, context).has_value() : read_node(file, context).has_value();
    if (read == diagnostics.has_errors()) __builtin_trap();
    render(diagnostics);
  }
  return 0;
}
