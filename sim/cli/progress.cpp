#include "sim/cli/progress.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace sim::cli {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (::isatty(::fileno(stderr)) != 0) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::show() {
  int seconds = 0;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::seconds(1), [this] { return end_; })) {
    fmt::print(stderr, "\r{} ... {} s", what_, ++seconds);
    std::fflush(stderr);
  }
  if (seconds > 0) std::fputs("\r\x1b[K", stderr);
}

}  // namespace sim::cli
