// The CLI as a process of a test's, started as some caller might.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cordon::cli::testing {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
  std::map<std::string, std::string> environment = {};
  // In the child, last before exec.
  void (*beginning)() = nullptr;
  bool closesOutput = false;  // nobody reads its standard output
};

// A user who is nobody else, with groups of their own that are not theirs alone.
const Caller ORDINARY_USER = {.uid = 64990, .gid = 64990, .groups = {64991, 64992}};

struct CliResult {
  int code = -1;  // of its exit; -1 where a signal killed it
  int signal = 0;
  std::string out;
  std::string err;
};

class CliProcess {
 public:
  CliProcess(const std::string& binary, const std::vector<std::string>& arguments,
             const Caller& caller = {});
  ~CliProcess();
  CliProcess(const CliProcess&) = delete;
  CliProcess& operator=(const CliProcess&) = delete;

  [[nodiscard]] pid_t id() const { return pid; }
  // Its one child, once there is one; nothing where it ended before.
  std::optional<pid_t> waitChild();
  // Kills it after a minute.
  CliResult wait();

 private:
  pid_t pid = -1;
  int outEnd = -1;
  int errEnd = -1;
  bool isReaped = false;
};

CliResult runCli(const std::string& binary, const std::vector<std::string>& arguments,
                 const Caller& caller = {});

// The value of a line of /proc/<pid>/status, "" where it is gone.
std::string statusOf(pid_t pid, const std::string& key);

// Whether there is no such process any more, or only its remains, within `patience`.
bool isGone(pid_t pid, std::chrono::milliseconds patience = std::chrono::seconds(10));

// A folder with the CLI in it and `parser` beside it, as packages and builds have them; reachable
// for every user.
class Installation {
 public:
  Installation(const std::string& cliBinary, const std::string& parserBinary);
  ~Installation();
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;

  [[nodiscard]] std::string cli() const { return folder + "/bin/cordon"; }
  [[nodiscard]] std::string path(const std::string& name) const { return folder + "/" + name; }
  // Readable for everybody.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string folder;
};

}  // namespace cordon::cli::testing
