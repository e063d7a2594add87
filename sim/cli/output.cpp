#include "sim/cli/output.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>

#include <unistd.h>

#include <fmt/format.h>

namespace sim::cli {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void fail(const std::string& file, int error) {
  throw IoError(fmt::format("cannot write {}: {}", file, std::strerror(error)));
}

void write_stdout(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) fail("the result to stdout", errno);
}

void write_file(const std::string& text, const std::string& path) {
  const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(temporary.c_str(), "wbx"));
  if (!file) fail(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0;
  const int write_error = errno;
  file.reset();
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = written ? errno : write_error;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  fail(path, error);
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

void write_result(const std::string& text, const std::string& file) {
  if (file.empty() || file == "-") {
    write_stdout(text);
  } else {
    write_file(text, file);
  }
}

int refuse(const Diagnostics& diagnostics) {
  print_diagnostics(diagnostics);
  return 2;
}

void print_diagnostics(const Diagnostics& diagnostics) {
  std::fputs(render(diagnostics, want_colour("auto", stderr)).c_str(), stderr);
}

bool want_colour(const std::string& mode, std::FILE* stream) {
  if (mode != "auto") return mode == "always";
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  if (is_set("CLICOLOR_FORCE") || is_set("FORCE_COLOR")) return true;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return ::isatty(::fileno(stream)) != 0;
}

}  // namespace sim::cli
