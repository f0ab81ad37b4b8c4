// A cordon-parser for tests alone: does what the file says that it is handed, one word, instead of
// reading it. Takes descriptors 3 and 4 as the real one does, without a sandbox of its own, so that
// it can tell what it was born with.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include <kj/async-io.h>
#include <kj/debug.h>

#include "common/ipc/rpc-peer.h"
#include "protocols/records.capnp.h"

namespace cordon::cli {
namespace {

constexpr int RPC_FD = 3;
constexpr int FILE_FD = 4;

using Names = std::vector<std::string>;

std::string linkOf(const std::string& path) {
  char target[256];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof(target));
  return size < 0 ? "none" : std::string(target, static_cast<std::size_t>(size));
}

void appendStatus(Names& names) {
  std::ifstream status("/proc/self/status");
  const std::set<std::string> wanted = {"Uid",        "Gid",    "Groups", "CapInh",
                                        "CapPrm",     "CapEff", "CapBnd", "CapAmb",
                                        "NoNewPrivs", "SigBlk", "SigIgn", "SigCgt"};
  for (std::string line; std::getline(status, line);) {
    for (char& c : line) c = c == '\t' ? ' ' : c;
    if (wanted.contains(line.substr(0, line.find(':')))) names.push_back(line);
  }
}

// What a launcher can leave behind, one line each.
Names describeItself(int argc, char** argv) {
  Names names;
  std::string arguments;
  for (int i = 1; i < argc; ++i) arguments += std::string(" ") + argv[i];
  names.push_back("arguments:" + arguments);
  int variables = 0;
  for (char** variable = environ; *variable != nullptr; ++variable) ++variables;
  names.push_back("variables: " + std::to_string(variables));
  appendStatus(names);
  names.push_back("net: " + linkOf("/proc/self/ns/net"));
  names.push_back("user: " + linkOf("/proc/self/ns/user"));
  names.push_back("cwd: " + linkOf("/proc/self/cwd"));
  names.push_back("session: " + std::string(::getsid(0) == ::getpid() ? "own" : "shared"));
  std::string open;
  DIR* folder = ::opendir("/proc/self/fd");
  const std::string own = std::to_string(::dirfd(folder));
  std::set<int> numbers;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.' && entry->d_name != own) {
      numbers.insert(static_cast<int>(std::strtol(entry->d_name, nullptr, 10)));
    }
  }
  ::closedir(folder);
  for (const int number : numbers) open += " " + std::to_string(number);
  names.push_back("descriptors:" + open);
  return names;
}

class ScriptedFile final : public protocols::RecordFile::Server {
 public:
  ScriptedFile(std::string wantedScript, Names ownNames)
      : script(std::move(wantedScript)), names(std::move(ownNames)) {}

  kj::Promise<void> readJunit(ReadJunitContext context) override {
    KJ_REQUIRE(script != "throw", "a text that must not cross", "\x1b[31m");
    if (script == "never") return kj::NEVER_DONE;
    if (script == "twice") {
      // Behind its end the list goes on.
      return writeCases(context, 1).then([this, context]() mutable {
        return writeCases(context, 1).then([this, context]() mutable { answer(context); });
      });
    }
    const unsigned count = script == "long-piece" ? 257 : static_cast<unsigned>(names.size());
    return writeCases(context, count).then([this, context]() mutable {
      if (script == "die-midway") ::raise(SIGKILL);
      answer(context);
    });
  }

 private:
  kj::Promise<void> writeCases(ReadJunitContext context, unsigned count) {
    auto sink = context.getParams().getCases();
    auto request = sink.writeRequest();
    auto cases = request.initCases(count);
    for (unsigned i = 0; i < count; ++i) {
      const std::string& name = names[i % names.size()];
      cases[i].setAttempts(1);
      cases[i].setName({reinterpret_cast<const kj::byte*>(name.data()), name.size()});
    }
    return request.send().then(
        [sink]() mutable { return sink.endRequest().send().ignoreResult(); });
  }

  void answer(ReadJunitContext context) {
    const auto size = static_cast<unsigned>(names.size());
    auto report = context.getResults().initReport();
    report.setCases(size);
    report.setPassed(size);
    report.setListed(size);
    report.setGreen(true);
    if (script == "lie") report.setFailed(1);
  }

  std::string script;
  Names names;
};

[[noreturn]] void sleepForEver() {
  for (;;) ::pause();
}

void sayRaw(const std::string& bytes) {
  [[maybe_unused]] const auto size = ::write(RPC_FD, bytes.data(), bytes.size());
}

// What is done before anything is served.
const std::map<std::string, std::function<void()>>& deeds() {
  static const std::map<std::string, std::function<void()>> ALL = {
      {"exit-0", []() { ::_exit(0); }},
      {"exit-3", []() { ::_exit(3); }},
      {"killed", []() { ::raise(SIGKILL); }},
      {"out-of-time", []() { ::raise(SIGXCPU); }},
      {"sleep", []() { sleepForEver(); }},
      {"hang-up-and-stay",
       []() {
         ::shutdown(RPC_FD, SHUT_RDWR);
         sleepForEver();
       }},
      {"garbage",
       []() {
         sayRaw(std::string(4096, '\xa5'));
         sleepForEver();
       }},
      {"wrapped-count",
       []() {
         sayRaw(std::string(4, '\xff') + std::string(4096, '\0'));
         sleepForEver();
       }},
      {"flood-log",
       []() {
         const std::string line = "\x1b]0;owned\x07 \u202e pretend\n";
         for (int i = 0; i < 100000; ++i) {
           [[maybe_unused]] const auto size = ::write(STDERR_FILENO, line.data(), line.size());
         }
         ::_exit(1);
       }},
  };
  return ALL;
}

int serve(const std::string& script, const Names& names) {
  auto io = kj::setupAsyncIo();
  ipc::RpcPeer peer(io.lowLevelProvider->wrapSocketFd(RPC_FD), ipc::RpcPeer::Side::SERVER,
                    capnp::Capability::Client(kj::heap<ScriptedFile>(script, names)),
                    ipc::PeerLimits{}, io.provider->getTimer());
  peer.onEnd().wait(io.waitScope);
  return 0;
}

}  // namespace
}  // namespace cordon::cli

int main(int argc, char** argv) {
  using namespace cordon::cli;
  char word[64];
  const ssize_t size = ::read(FILE_FD, word, sizeof(word));
  if (size < 0) return 9;
  const std::string script(word, static_cast<std::size_t>(size));
  if (const auto deed = deeds().find(script); deed != deeds().end()) deed->second();
  const Names names = script == "itself" ? describeItself(argc, argv) : Names{"a case"};
  return serve(script, names);
}
