#include "tests/integration/sealed-parser.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <kj/debug.h>

namespace cordon::tests {
namespace {

constexpr std::chrono::seconds PATIENCE{60};

[[noreturn]] void become(const ParserStart& start, std::vector<std::string> arguments, int log) {
  ::dup2(log, STDERR_FILENO);
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  if (start.beginning != nullptr) {
    start.beginning();
  } else {
    sandbox::testing::becomeNewborn(start.birth);
  }
  ::execv(words[0], words.data());
  ::_exit(98);
}

}  // namespace

SealedParser::SealedParser(ParserStart start) {
  std::string pattern = "/tmp/cordon-sealed-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  directory = pattern;
  std::filesystem::permissions(directory, std::filesystem::perms(0711));
  const std::string own = directory + "/own";
  std::filesystem::create_directory(own);
  KJ_SYSCALL(::chown(own.c_str(), sandbox::testing::NEWBORN_UID, sandbox::testing::NEWBORN_GID));
  path = own + "/s";
  std::filesystem::create_directory(directory + "/range");

  if (start.binary.empty()) start.binary = CORDON_PARSER_BINARY;
  std::vector<std::string> arguments{
      start.binary,         "--role",      "channel",
      "--listen",           "uds:" + path, "--sockets-dir",
      directory + "/range", "--allow-uid", std::to_string(::geteuid())};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());

  int ends[2];
  KJ_SYSCALL(::pipe2(ends, O_CLOEXEC));
  logEnd = kj::AutoCloseFd(ends[0]);
  kj::AutoCloseFd childEnd(ends[1]);
  if (start.logsToFile)
    childEnd = kj::AutoCloseFd(::open((own + "/log").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  KJ_SYSCALL(pid = ::fork());
  if (pid == 0) become(start, std::move(arguments), childEnd);
  if (start.logsToFile) {
    waitEnd();
    std::ifstream file(own + "/log");
    logText.assign(std::istreambuf_iterator<char>(file), {});
  }
}

SealedParser::~SealedParser() {
  if (!ended) {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

void SealedParser::readLog(std::chrono::milliseconds patience) {
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

bool SealedParser::waitSealed() {
  const auto deadline = std::chrono::steady_clock::now() + PATIENCE;
  while (std::chrono::steady_clock::now() < deadline) {
    if (logText.find(" sandbox.entered ") != std::string::npos) return true;
    if (logClosed) return false;
    readLog(std::chrono::milliseconds(1000));
  }
  throw std::runtime_error("the parser neither serves nor ends: " + logText);
}

int SealedParser::waitEnd() {
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

const std::string& SealedParser::log() {
  const std::size_t before = logText.size();
  readLog(std::chrono::milliseconds(0));
  if (logText.size() != before) return log();
  return logText;
}

std::string SealedParser::guestSocket(std::uint32_t cid) const {
  const std::string folder = directory + "/range/" + std::to_string(cid);
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  return folder + "/vsock.sock";
}

std::string SealedParser::status(const std::string& what) const {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(what + ":")) continue;
    line.erase(0, what.size() + 1);
    return line.substr(line.find_first_not_of(" \t"));
  }
  return {};
}

std::size_t SealedParser::memory(const std::string& what) const {
  return std::stoul(status(what));
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
