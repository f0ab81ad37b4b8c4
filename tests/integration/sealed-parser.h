// The real parser in the state in which it serves: started as a launcher starts it, inside its
// sandbox, with a socket that the test may connect to. Root only.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <kj/async-io.h>
#include <kj/io.h>

#include "common/ipc/rpc-peer.h"
#include "common/sandbox/testing/newborn.h"
#include "protocols/parser.capnp.h"

namespace cordon::tests {

struct ParserStart {
  std::string binary = {};  // default: cordon-parser
  sandbox::testing::Birth birth = {.keepsCapabilities = false, .keepsBounding = false};
  std::vector<std::string> arguments = {};  // further ones
  std::map<std::string, std::string> environment = {};
  // Instead of becoming newborn by `birth`: called in the child, before exec.
  void (*beginning)() = nullptr;
  bool logsToFile = false;
};

class SealedParser {
 public:
  explicit SealedParser(ParserStart start = {});
  ~SealedParser();
  SealedParser(const SealedParser&) = delete;
  SealedParser& operator=(const SealedParser&) = delete;

  // Whether it serves: false where it ended before that.
  bool waitSealed();
  // Its wait status, once it ended.
  int waitEnd();

  // Where it dials guest `cid`.
  [[nodiscard]] std::string guestSocket(std::uint32_t cid) const;
  [[nodiscard]] const std::string& socket() const { return path; }
  // A number in kB of /proc/<pid>/status: "VmRSS", …
  [[nodiscard]] std::size_t memory(const std::string& what) const;
  [[nodiscard]] std::string status(const std::string& what) const;
  // What it wrote to its log so far.
  const std::string& log();

 private:
  void readLog(std::chrono::milliseconds patience);

  std::string directory;
  std::string path;
  pid_t pid = -1;
  kj::AutoCloseFd logEnd;
  std::string logText;
  bool logClosed = false;
  std::optional<int> ended;
};

// A connection to it.
class ParserConnection {
 public:
  ParserConnection(kj::AsyncIoContext& io, const SealedParser& parser);
  ~ParserConnection() noexcept(false);
  KJ_DISALLOW_COPY(ParserConnection);

  protocols::GuestChannel::Client open(std::uint32_t cid, uid_t uid);
  protocols::Parser::Client parser = nullptr;

 private:
  kj::Own<ipc::RpcPeer> peer;
  kj::Promise<void> running = nullptr;
};

}  // namespace cordon::tests
