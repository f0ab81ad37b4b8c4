#include "tests/vm/booted-range.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/helper/launch/identity.h"

namespace cordon::vm {
namespace {

constexpr std::uint64_t READY_MS = 180'000;  // a loaded machine under TCG
constexpr std::uint32_t FIRST_TEST_CID = 20000;
constexpr std::uint32_t LAST_TEST_CID = 20999;
constexpr const char* LOCKS = "/run/lock/cordon-vm-tests";
constexpr const char* RUNTIME = "/run/cordon";

std::string newRangeId() {
  unsigned value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) throw std::runtime_error("no randomness");
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

std::string contentsOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string endOf(const std::string& text) {
  return text.size() > 4096 ? text.substr(text.size() - 4096) : text;
}

}  // namespace

BootedRange::BootedRange(const RangeOptions& options)
    : range(newRangeId()), context(kj::setupAsyncIo()) {
  for (unsigned i = 0; i < options.guests; ++i) cids.push_back(takeCid());
  const std::string firstCid = std::to_string(cids.at(0));
  parser = std::make_unique<Launched>(
      std::vector<std::string>{"parser", "--range", range, "--role", "channel", "--first-cid",
                               firstCid, "--listen", "uds:" + parserSocket()},
      folder.path() + "/parser.log");
  for (unsigned i = 0; i < options.guests; ++i) {
    std::vector<std::string> arguments = {"guest",
                                          "--range",
                                          range,
                                          "--cid",
                                          std::to_string(cids[i]),
                                          "--first-cid",
                                          firstCid,
                                          "--kernel",
                                          GUEST_KERNEL,
                                          "--initrd",
                                          GUEST_INITRD,
                                          "--memory",
                                          std::to_string(options.memoryMib),
                                          "--accel",
                                          "tcg",
                                          "--console",
                                          folder.path() + "/console-" + std::to_string(i),
                                          "--append",
                                          "cordon.hostname=guest" + std::to_string(i)};
    for (const std::string& word : options.append)
      arguments.insert(arguments.end(), {"--append", word});
    guests.push_back(std::make_unique<Launched>(
        arguments, folder.path() + "/guest-" + std::to_string(i) + ".log"));
  }
  bool started = parser->waitForLog(": running under uid");
  for (auto& guest : guests) started = guest->waitForLog(": running under uid") && started;
  if (!started) throw std::runtime_error("the range did not start:\n" + logs());
  parserClient = std::make_unique<deploy::ParserClient>(context, parserSocket(), 10'000);
  for (unsigned i = 0; options.waitReady && i < options.guests; ++i) {
    auto guest = channel(i);
    if (auto failure = parserClient->waitReady(guest, READY_MS)) {
      throw std::runtime_error("guest " + std::to_string(i) + " is not ready: " + *failure + "\n" +
                               logs());
    }
  }
}

BootedRange::~BootedRange() {
  tearDown();
  for (int lock : cidLocks) close(lock);
}

std::uint32_t BootedRange::takeCid() {
  mkdir(LOCKS, 0700);
  for (std::uint32_t cid = FIRST_TEST_CID; cid <= LAST_TEST_CID; ++cid) {
    int lock = open((std::string(LOCKS) + "/" + std::to_string(cid)).c_str(),
                    O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
      cidLocks.push_back(lock);
      return cid;
    }
    if (lock >= 0) close(lock);
  }
  throw std::runtime_error("every CID of tests is taken");
}

std::uint32_t BootedRange::uid(unsigned guest) const {
  return launch::guestIdentity(cids.at(guest)).uid;
}

std::uint32_t BootedRange::parserUid() const {
  return launch::channelParserIdentity(cids.at(0)).uid;
}

std::string BootedRange::guestSocket(unsigned guest) const {
  return std::string(RUNTIME) + "/ranges/" + range + "/" + std::to_string(cids.at(guest)) +
         "/vsock.sock";
}

std::string BootedRange::parserSocket() const {
  return std::string(RUNTIME) + "/ranges/" + range + "/channel/parser.sock";
}

protocols::GuestChannel::Client BootedRange::channel(unsigned guest) {
  return parserClient->openChannel(cid(guest), uid(guest));
}

std::string BootedRange::logs() const {
  std::string text = "-- parser:\n" + endOf(parser->log());
  for (std::size_t i = 0; i < guests.size(); ++i) {
    text += "-- guest " + std::to_string(i) + ":\n" + endOf(guests[i]->log());
    text +=
        "-- its console:\n" + endOf(contentsOf(folder.path() + "/console-" + std::to_string(i)));
  }
  return text;
}

void BootedRange::tearDown() {
  if (down) return;
  down = true;
  parserClient.reset();
  for (auto& guest : guests) {
    if (!guest->ended()) guest->signal(SIGTERM);
  }
  for (auto& guest : guests)
    EXPECT_TRUE(guest->wait()) << "a guest's launcher does not end\n" << logs();
  if (parser && !parser->ended()) {
    parser->signal(SIGTERM);
    EXPECT_TRUE(parser->wait()) << "the parser's launcher does not end\n" << logs();
  }
  expectNoResidue();
}

void BootedRange::expectNoResidue() const {
  for (std::size_t i = 0; i < cids.size(); ++i) {
    EXPECT_EQ(launch::processOf(uid(static_cast<unsigned>(i))), std::nullopt)
        << "a process of guest " << i;
  }
  EXPECT_EQ(launch::processOf(parserUid()), std::nullopt) << "a process of the parser";
  EXPECT_FALSE(std::filesystem::exists(std::string(RUNTIME) + "/ranges/" + range))
      << "the range's directory";
  EXPECT_EQ(contentsOf("/proc/self/mountinfo").find(range), std::string::npos) << "a mount";
  EXPECT_EQ(contentsOf("/proc/net/unix").find(range), std::string::npos) << "a socket";
}

std::vector<HostProcess> processesOf(std::uint32_t uid) {
  std::vector<HostProcess> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    const pid_t pid = std::stoi(name);
    if (statusLine(pid, "State").starts_with("Z")) continue;
    const std::string uids = statusLine(pid, "Uid");
    if (uids.substr(0, uids.find('\t')) != std::to_string(uid)) continue;
    found.push_back({pid, statusLine(pid, "Name")});
  }
  return found;
}

std::string statusLine(pid_t pid, const std::string& key) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size() + 1);
    if (begin == std::string::npos) return "";
    return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
  }
  return "";
}

}  // namespace cordon::vm
