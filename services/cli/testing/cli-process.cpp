#include "services/cli/testing/cli-process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cordon::cli::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds PATIENCE{60};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

[[noreturn]] void become(const std::string& binary, std::vector<std::string> words,
                         const Caller& caller, int out, int err) {
  const auto must = [](bool holds) {
    if (!holds) ::_exit(99);
  };
  must(::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0);
  // What the test's own caller left open is none of the program's descriptors.
  must(::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0);
  must(::setgroups(caller.groups.size(), caller.groups.data()) == 0);
  must(::setresgid(caller.gid, caller.gid, caller.gid) == 0);
  must(::setresuid(caller.uid, caller.uid, caller.uid) == 0);
  for (const auto& [name, value] : caller.environment) ::setenv(name.c_str(), value.c_str(), 1);
  words.insert(words.begin(), binary);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (caller.beginning != nullptr) caller.beginning();
  ::execv(binary.c_str(), argv.data());
  ::_exit(98);
}

// True at the end of the stream.
bool readSome(int fd, std::string& text) {
  char buffer[65536];
  const ssize_t size = ::read(fd, buffer, sizeof(buffer));
  if (size > 0) text.append(buffer, static_cast<std::size_t>(size));
  return size == 0 || (size < 0 && errno != EINTR);
}

}  // namespace

CliProcess::CliProcess(const std::string& binary, const std::vector<std::string>& arguments,
                       const Caller& caller) {
  int out[2];
  int err[2];
  require(::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(err, O_CLOEXEC) == 0, "pipe2");
  pid = ::fork();
  require(pid >= 0, "fork");
  if (pid == 0) {
    if (caller.closesOutput) ::close(out[0]);
    become(binary, arguments, caller, out[1], err[1]);
  }
  ::close(out[1]);
  ::close(err[1]);
  outEnd = out[0];
  errEnd = err[0];
  if (caller.closesOutput) {
    ::close(outEnd);
    outEnd = -1;
  }
}

CliProcess::~CliProcess() {
  if (!isReaped) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  if (outEnd >= 0) ::close(outEnd);
  if (errEnd >= 0) ::close(errEnd);
}

std::optional<pid_t> CliProcess::waitChild() {
  const std::string number = std::to_string(pid);
  std::string path = "/proc/";
  path.append(number).append("/task/").append(number).append("/children");
  const auto deadline = Clock::now() + PATIENCE;
  while (Clock::now() < deadline) {
    std::ifstream file(path);
    pid_t child = 0;
    if (file >> child) return child;
    if (statusOf(pid, "State").starts_with("Z")) return std::nullopt;
    std::this_thread::yield();
  }
  throw std::runtime_error("no child");
}

CliResult CliProcess::wait() {
  CliResult result;
  std::array<pollfd, 2> streams = {{{outEnd, POLLIN, 0}, {errEnd, POLLIN, 0}}};
  const auto deadline = Clock::now() + PATIENCE;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (Clock::now() > deadline) ::kill(pid, SIGKILL);
    if (::poll(streams.data(), streams.size(), 1000) <= 0) continue;
    if (streams[0].revents != 0 && readSome(outEnd, result.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && readSome(errEnd, result.err)) streams[1].fd = -1;
  }
  int status = 0;
  require(::waitpid(pid, &status, 0) == pid, "waitpid");
  isReaped = true;
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

CliResult runCli(const std::string& binary, const std::vector<std::string>& arguments,
                 const Caller& caller) {
  return CliProcess(binary, arguments, caller).wait();
}

std::string statusOf(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  }
  return "";
}

bool isGone(pid_t pid, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  do {
    const std::string state = statusOf(pid, "State");
    if (state.empty() || state.starts_with("Z")) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } while (Clock::now() < deadline);
  return false;
}

Installation::Installation(const std::string& cliBinary, const std::string& parserBinary) {
  std::string pattern = "/tmp/cordon-cli-XXXXXX";
  require(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  folder = pattern;
  namespace fs = std::filesystem;
  fs::create_directory(folder + "/bin");
  fs::copy_file(cliBinary, cli());
  if (!parserBinary.empty()) fs::copy_file(parserBinary, folder + "/bin/cordon-parser");
  for (const char* name : {"", "/bin", "/bin/cordon"}) {
    fs::permissions(folder + name, fs::perms(0755));
  }
}

Installation::~Installation() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::string Installation::write(const std::string& name, const std::string& content) const {
  std::ofstream file(path(name), std::ios::binary);
  file << content;
  file.close();
  require(file.good(), "write");
  return path(name);
}

}  // namespace cordon::cli::testing
