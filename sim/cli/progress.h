// A sign of life while long work goes on: after a second one line on stderr, "simulating ... 12 s",
// erased when the work ends. Only on a terminal.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace sim::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace sim::cli
