// Any bytes as the text of a program: the reader complains or reads, and what it read prints and
// reads back the same.
// Corpus: tests/golden
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "sim/program/program_text.h"

namespace {

std::optional<sim::program::Program> parse(std::string text, sim::Diagnostics& diagnostics) {
  return sim::program::parse_program(
      std::make_shared<sim::SourceFile>(sim::SourceFile{"input", std::move(text)}), diagnostics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sim::Diagnostics diagnostics;
  const auto program = parse(std::string(reinterpret_cast<const char*>(data), size), diagnostics);
  [[maybe_unused]] const std::string complaints = render(diagnostics);
  if (!program) return 0;
  const std::string text = sim::program::to_text(*program);
  sim::Diagnostics none;
  const auto again = parse(text, none);
  if (!again || sim::program::to_text(*again) != text) std::abort();
  return 0;
}
