#include "sim/base/files.h"

#include <filesystem>
#include <system_error>

namespace sim {

std::string_view why_not_regular(const std::string& path) {
  using std::filesystem::file_type;
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case file_type::directory:
      return "it is a directory";
    case file_type::fifo:
      return "it is a named pipe, not a regular file";
    case file_type::socket:
      return "it is a socket, not a regular file";
    case file_type::block:
    case file_type::character:
      return "it is a device, not a regular file";
    default:
      return {};
  }
}

}  // namespace sim
