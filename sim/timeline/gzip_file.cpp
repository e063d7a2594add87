#include "sim/timeline/gzip_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "sim/base/files.h"
#include "sim/base/text.h"

namespace sim {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

}  // namespace

std::shared_ptr<const SourceFile> read_gzip_file(const std::string& path, const Span& blame,
                                                 Diagnostics& diagnostics, std::size_t limit) {
  auto source = std::make_shared<SourceFile>();
  source->path = path;
  const auto refuse = [&](std::string message) {
    diagnostics.error(blame.file ? blame : Span{source}, std::move(message));
    return nullptr;
  };
  if (path == "-") return refuse("stdin cannot be an input; name a file");
  if (const std::string_view why = why_not_regular(path); !why.empty()) {
    return refuse(fmt::format("cannot read the file: {}", why));
  }
  errno = 0;
  const GzipFile file(gzopen(path.c_str(), "rb"));
  if (!file) {
    return refuse(fmt::format("cannot open the file: {}",
                              errno != 0 ? std::strerror(errno) : "memory is short"));
  }
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const int n = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    // zlib hands a file of another kind on as it stands.
    if (text.empty() && path.ends_with(".gz") && gzdirect(file.get()) != 0) {
      return refuse(n == 0 ? "the file is empty" : "the file is not gzip, whatever its name says");
    }
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return refuse(fmt::format("the file expands to more than {} bytes",
                                group_digits(static_cast<std::int64_t>(limit))));
    }
    if (n > 0) continue;
    int code = Z_OK;
    const char* message = gzerror(file.get(), &code);
    if (code == Z_BUF_ERROR) {
      return refuse(fmt::format("the file is cut short after {} bytes of text",
                                group_digits(static_cast<std::int64_t>(text.size()))));
    }
    if (code != Z_OK && code != Z_STREAM_END) {
      return refuse(fmt::format("the file is damaged: {}", message));
    }
    source->text = std::move(text);
    return source;
  }
}

}  // namespace sim
