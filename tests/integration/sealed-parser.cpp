#include "tests/integration/sealed-parser.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <kj/debug.h>

#include "tests/support/residue.h"

namespace cordon::tests {
namespace {

constexpr std::chrono::seconds PATIENCE{60};

[[noreturn]] void become(const ParserStart& start, std::vector<std::string> arguments,
                         const std::vector<int>& keep, int log, pid_t parent) {
  ::dup2(log, STDERR_FILENO);
  // Above the numbers that the child is to have first, so that none is overwritten before it was
  // moved.
  constexpr int ABOVE = 100;
  constexpr int FIRST = 3;
  for (std::size_t i = 0; i < keep.size(); ++i) ::dup2(keep[i], ABOVE + static_cast<int>(i));
  for (std::size_t i = 0; i < keep.size(); ++i) {
    ::dup2(ABOVE + static_cast<int>(i), FIRST + static_cast<int>(i));
    ::close(ABOVE + static_cast<int>(i));
  }
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  if (start.beginning != nullptr) {
    start.beginning();
  } else {
    sandbox::testing::becomeNewborn(start.birth);
  }
  dieWith(parent);
  ::execv(words[0], words.data());
  ::_exit(98);
}

std::vector<std::string> withFurther(std::vector<std::string> arguments, const ParserStart& start) {
  arguments[0] = start.binary.empty() ? CORDON_PARSER_BINARY : start.binary;
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  return arguments;
}

std::string lineOf(const std::string& path, const std::string& beginning) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(beginning)) continue;
    line.erase(0, beginning.size());
    return line.substr(line.find_first_not_of(" \t"));
  }
  return {};
}

}  // namespace

SealedProcess::SealedProcess(const ParserStart& start, std::vector<std::string> arguments,
                             const std::vector<int>& keep, int log) {
  int ends[2];
  KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
  logEnd = kj::AutoCloseFd(ends[0]);
  const kj::AutoCloseFd childEnd(ends[1]);
  const pid_t parent = ::getpid();
  KJ_SYSCALL(pid = ::fork());
  if (pid == 0) become(start, std::move(arguments), keep, log < 0 ? childEnd.get() : log, parent);
}

SealedProcess::~SealedProcess() {
  if (!ended) {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
  }
}

void SealedProcess::readLog(std::chrono::milliseconds patience) {
  pollfd poller{.fd = logEnd, .events = POLLIN, .revents = 0};
  if (logClosed || ::poll(&poller, 1, static_cast<int>(patience.count())) <= 0) return;
  char buffer[4096];
  const ssize_t size = ::read(logEnd, buffer, sizeof(buffer));
  if (size <= 0) {
    logClosed = true;
  } else {
    logText.append(buffer, static_cast<std::size_t>(size));
  }
}

bool SealedProcess::waitSealed() {
  const auto deadline = std::chrono::steady_clock::now() + PATIENCE;
  while (std::chrono::steady_clock::now() < deadline) {
    if (logText.find(" sandbox.entered ") != std::string::npos) return true;
    if (logClosed) return false;
    readLog(std::chrono::milliseconds(1000));
  }
  throw std::runtime_error("the parser neither serves nor ends: " + logText);
}

int SealedProcess::waitEnd() {
  const auto deadline = std::chrono::steady_clock::now() + PATIENCE;
  while (!ended) {
    int status = 0;
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid) ended = status;
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the parser does not end: " + logText);
    // The end of its log is the event; the wait status follows it.
    if (!ended) readLog(std::chrono::milliseconds(logClosed ? 0 : 50));
  }
  return *ended;
}

const std::string& SealedProcess::log() {
  const std::size_t before = logText.size();
  readLog(std::chrono::milliseconds(0));
  if (logText.size() != before) return log();
  return logText;
}

std::string SealedProcess::status(const std::string& what) const {
  return lineOf("/proc/" + std::to_string(pid) + "/status", what + ":");
}

std::string SealedProcess::limit(const std::string& what) const {
  return lineOf("/proc/" + std::to_string(pid) + "/limits", what + " ");
}

std::size_t SealedProcess::memory(const std::string& what) const {
  return std::stoul(status(what));
}

SealedParser::SealedParser(const ParserStart& start) : logsToFile(start.logsToFile) {
  directory = makeOwnedDirectory("cordon-sealed");
  std::filesystem::permissions(directory, std::filesystem::perms(0711));
  const std::string own = directory + "/own";
  std::filesystem::create_directory(own);
  KJ_SYSCALL(::chown(own.c_str(), sandbox::testing::NEWBORN_UID, sandbox::testing::NEWBORN_GID));
  path = own + "/s";
  std::filesystem::create_directory(directory + "/range");

  kj::AutoCloseFd logFile;
  if (logsToFile)
    logFile = kj::AutoCloseFd(::open((own + "/log").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  process = std::make_unique<SealedProcess>(
      start,
      withFurther({"", "--role", "channel", "--listen", "uds:" + path, "--sockets-dir",
                   directory + "/range", "--allow-uid", std::to_string(::geteuid())},
                  start),
      std::vector<int>{}, logsToFile ? logFile.get() : -1);
  if (!logsToFile) return;
  process->waitEnd();
  std::ifstream file(own + "/log");
  fileLog.assign(std::istreambuf_iterator<char>(file), {});
}

SealedParser::~SealedParser() {
  process = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

const std::string& SealedParser::log() {
  return logsToFile ? fileLog : process->log();
}

std::string SealedParser::guestSocket(std::uint32_t cid) const {
  const std::string folder = directory + "/range/" + std::to_string(cid);
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  return folder + "/vsock.sock";
}

SealedReader::SealedReader(kj::AsyncIoContext& io, int fd, const ParserStart& start) {
  int ends[2];
  KJ_SYSCALL(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd own(ends[0]);
  const kj::AutoCloseFd other(ends[1]);
  child = std::make_unique<SealedProcess>(
      start, withFurther({"", "--role", "read", "--rpc-fd", "3", "--file-fd", "4"}, start),
      std::vector<int>{other.get(), fd});
  constexpr capnp::uint FLAGS = kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC;
  peer = kj::heap<ipc::RpcPeer>(io.lowLevelProvider->wrapSocketFd(kj::mv(own), FLAGS),
                                ipc::RpcPeer::Side::CLIENT, nullptr, ipc::PeerLimits{},
                                io.provider->getTimer());
  running = peer->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
  file = peer->bootstrap().castAs<protocols::RecordFile>();
}
SealedReader::~SealedReader() noexcept(false) = default;

void SealedReader::leave() {
  file = nullptr;
  running = nullptr;
  peer = nullptr;
}

ParserConnection::ParserConnection(kj::AsyncIoContext& io, const SealedParser& sealed) {
  auto address = io.provider->getNetwork()
                     .parseAddress(kj::str("unix:", sealed.socket().c_str()))
                     .wait(io.waitScope);
  ipc::PeerLimits limits;
  peer = kj::heap<ipc::RpcPeer>(address->connect().wait(io.waitScope), ipc::RpcPeer::Side::CLIENT,
                                nullptr, limits, io.provider->getTimer());
  running = peer->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
  parser = peer->bootstrap().castAs<protocols::Parser>();
}
ParserConnection::~ParserConnection() noexcept(false) = default;

protocols::GuestChannel::Client ParserConnection::open(std::uint32_t cid, uid_t uid) {
  auto request = parser.openChannelRequest();
  request.initGuest().setCid(cid);
  request.getGuest().setUid(uid);
  return request.send().getChannel();
}

}  // namespace cordon::tests
