// Whole files, compressed with gzip or not.
#pragma once

#include <memory>
#include <string>

#include "sim/base/diagnostics.h"

namespace sim {

// The expanded text of `path`. Null, with an error filed at `blame`, where the file cannot be
// opened, is damaged or cut short, or expands to more than `limit` bytes.
std::shared_ptr<const SourceFile> read_gzip_file(const std::string& path, const Span& blame,
                                                 Diagnostics& diagnostics,
                                                 std::size_t limit = std::size_t{1} << 30);

}  // namespace sim
