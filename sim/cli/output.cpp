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

namespace fs = std::filesystem;

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

bool put(const std::string& text, std::FILE* file) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

// A pipe, a terminal or another device: it is no file of ours to replace.
void write_in_place(const std::string& text, const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
  if (!file) fail(path, errno);
  if (!put(text, file.get()) && errno != EPIPE) fail(path, errno);
}

// The file that `path` leads to through links, though it may not exist yet.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  fs::path at = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(at, error); ++i) {
    at = at.parent_path() / fs::read_symlink(at, error);
  }
  return at.string();
}

void write_whole(const std::string& text, const std::string& name) {
  const std::string path = behind_links(name);
  const std::string temporary = fmt::format("{}.{}.part", path, ::getpid());
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(temporary.c_str(), "wbx"));
  if (!file) fail(name, errno);
  std::error_code failed;
  const fs::file_status before = fs::status(path, failed);
  if (fs::exists(before)) fs::permissions(temporary, before.permissions(), failed);
  const bool written = put(text, file.get());
  const int write_error = errno;
  file.reset();
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int error = written ? errno : write_error;
  fs::remove(temporary, failed);
  fail(name, error);
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

void write_result(const std::string& text, const std::string& file) {
  std::error_code none;
  const fs::file_status target = fs::status(file, none);
  if (file.empty() || file == "-") {
    write_stdout(text);
  } else if (fs::is_directory(target)) {
    fail(file, EISDIR);
  } else if (fs::is_other(target)) {
    write_in_place(text, file);
  } else {
    write_whole(text, file);
  }
}

bool may_write(const std::string& output, const std::vector<std::string>& inputs,
               Diagnostics& diagnostics) {
  if (output.empty() || output == "-") return true;
  for (const std::string& input : inputs) {
    std::error_code absent;
    if (!fs::equivalent(output, input, absent)) continue;
    diagnostics.error({}, fmt::format("-o {} would overwrite an input of this run", output));
    return false;
  }
  return true;
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
