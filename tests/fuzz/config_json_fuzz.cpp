// Any bytes as a model's config.json: read or refused, and the complaint can be printed.
// Corpus: models
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/scenario/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sim;
  auto file = std::make_shared<SourceFile>(
      SourceFile{"config.json", std::string(reinterpret_cast<const char*>(data), size)});
  Diagnostics diagnostics;
  const auto model = read_model("fuzz", std::move(file), diagnostics);
  if (!model && !diagnostics.has_errors()) __builtin_trap();
  render(diagnostics);
  return 0;
}
