#include "sim/timeline/gzip_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <zlib.h>

namespace sim {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

}  // namespace

std::shared_ptr<const SourceFile> read_gzip_file(const std::string& path, const Span& blame,
                                                 Diagnostics& diagnostics, std::size_t limit) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    diagnostics.error(blame, fmt::format("'{}' is a directory", path));
    return nullptr;
  }
  const GzipFile file(gzopen(path.c_str(), "rb"));
  if (!file) {
    diagnostics.error(blame, fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
    return nullptr;
  }
  auto source = std::make_shared<SourceFile>();
  source->path = path;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const int n = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (n > 0) source->text.append(buffer.data(), static_cast<std::size_t>(n));
    if (source->text.size() > limit) {
      diagnostics.error(blame, fmt::format("'{}' expands to more than {} bytes", path, limit));
      return nullptr;
    }
    if (n > 0) continue;
    int code = Z_OK;
    const char* message = gzerror(file.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) return source;
    diagnostics.error(blame, code == Z_BUF_ERROR
                                 ? fmt::format("'{}' is cut short after {} bytes of text", path,
                                               source->text.size())
                                 : fmt::format("'{}' is damaged: {}", path, message));
    return nullptr;
  }
}

}  // namespace sim
