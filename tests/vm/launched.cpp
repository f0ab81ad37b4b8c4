#include "tests/vm/launched.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "tests/support/residue.h"

namespace cordon::vm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

TestFolder::TestFolder() {
  folder = tests::makeOwnedDirectory(std::filesystem::temp_directory_path(), "cordon-vm");
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

Launched::Launched(const std::vector<std::string>& arguments, std::string logPath)
    : logFile(std::move(logPath)) {
  int log = open(logFile.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) throw std::runtime_error("cannot open " + logFile);
  std::vector<char*> argv = {const_cast<char*>(CORDON_LAUNCH)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  child = fork();
  if (child == 0) {
    // By TERM, so that it takes its range down.
    tests::dieWith(parent, SIGTERM);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(CORDON_LAUNCH, argv.data());
    _exit(127);
  }
  close(log);
  if (child < 0) throw std::runtime_error("cannot fork");
}

Launched::~Launched() {
  if (ended()) return;
  signal(SIGKILL);
  wait();
}

bool Launched::ended() {
  return wait(std::chrono::milliseconds(0)).has_value();
}

std::optional<int> Launched::wait(std::chrono::milliseconds limit) {
  if (status) return status;
  int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  pollfd ending{process, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&ending, 1, static_cast<int>(limit.count()));
  } while (ready < 0 && errno == EINTR);
  close(process);
  if (ready != 1) return std::nullopt;
  int ended = 0;
  if (waitpid(child, &ended, 0) == child) status = ended;
  return status;
}

void Launched::signal(int number) const {
  kill(child, number);
}

std::string Launched::log() const {
  std::ifstream file(logFile);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Launched::waitForLog(const std::string& text, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    // First, so that what is written before the end is seen.
    bool over = ended();
    if (log().find(text) != std::string::npos) return true;
    if (over || Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace cordon::vm
