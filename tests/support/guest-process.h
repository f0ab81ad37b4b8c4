// `cordon-guest --listen unix:PATH` as a child of the test, optionally under another uid.
#pragma once

#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace cordon::tests {

class GuestProcess {
 public:
  // `binary` starts as `uid` and serves `socket`; it answers once this returns. Throws where it
  // does not.
  GuestProcess(const std::string& binary, const std::string& socket, uid_t uid = 0);
  ~GuestProcess();
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;

  // Puts another in its place and kills it: another session, an empty store. At no time does nobody
  // listen.
  void restart();

 private:
  // Returns its pid, once it answers at `path`.
  [[nodiscard]] pid_t start(const std::string& path);

  std::string binary;
  std::string socket;
  uid_t uid;
  // Of whom restart() and others call: a child dies with the thread that started it only where that
  // is this one.
  std::thread::id maker = std::this_thread::get_id();
  std::vector<pid_t> started;
  pid_t pid = -1;
};

}  // namespace cordon::tests
