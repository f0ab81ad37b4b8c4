// cordon-launch as a child of a test, its log in a file.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cordon::vm {

// An own folder below the system's temporary one, removed with all that is in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return folder; }

 private:
  std::string folder;
};

class Launched {
 public:
  // arguments: without the program's name.
  Launched(const std::vector<std::string>& arguments, std::string logPath);
  ~Launched();  // SIGKILL, where it still runs
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  [[nodiscard]] pid_t pid() const { return child; }
  // Whether it has ended; reaps it then.
  bool ended();
  // Waits for the end, for at most `limit`: its wait status.
  std::optional<int> wait(std::chrono::milliseconds limit = std::chrono::seconds(30));
  void signal(int number) const;
  [[nodiscard]] std::string log() const;
  // Waits until the log holds `text`, it ends, or `limit` is over. Whether it holds it.
  bool waitForLog(const std::string& text,
                  std::chrono::milliseconds limit = std::chrono::seconds(30));

 private:
  std::string logFile;
  pid_t child = -1;
  std::optional<int> status;
};

}  // namespace cordon::vm
