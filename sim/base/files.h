// What stands at a path, before it is opened.
#pragma once

#include <string>
#include <string_view>

namespace sim {

// Why `path` cannot be read as a whole file: "it is a directory", "it is a named pipe, not a
// regular file". Empty for a regular file, and where nothing stands there (opening then says why).
// Reading a pipe or a terminal would wait for whoever writes there, perhaps for ever.
std::string_view why_not_regular(const std::string& path);

}  // namespace sim
