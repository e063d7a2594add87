// A Program as stable text, one op a line; golden files hold it and it reads back.
#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/program/program.h"

namespace sim::program {

std::string to_text(const Program& program);
std::optional<Program> parse_program(std::shared_ptr<const SourceFile> file,
                                     Diagnostics& diagnostics);

}  // namespace sim::program
