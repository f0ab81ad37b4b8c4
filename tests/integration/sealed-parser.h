// The real parser in the state in which it serves: started as a launcher starts it, inside its
// sandbox, with a socket that the test may connect to (role channel) or is connected to (role
// read). Root only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <kj/async-io.h>
#include <kj/io.h>

#include "common/ipc/rpc-peer.h"
#include "common/sandbox/testing/newborn.h"
#include "protocols/parser.capnp.h"
#include "protocols/records.capnp.h"

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

// A parser's process: its life, its log, and what the kernel says of it.
class SealedProcess {
 public:
  // `keep`: a descriptor of this process for each number from 3 upwards that the child is to have.
  SealedProcess(const ParserStart& start, std::vector<std::string> arguments,
                const std::vector<int>& keep = {}, int log = -1);
  ~SealedProcess();
  SealedProcess(const SealedProcess&) = delete;
  SealedProcess& operator=(const SealedProcess&) = delete;

  // Whether it serves: false where it ended before that.
  bool waitSealed();
  // Its wait status, once it ended.
  int waitEnd();

  // A number in kB of /proc/<pid>/status: "VmRSS", …
  [[nodiscard]] std::size_t memory(const std::string& what) const;
  [[nodiscard]] std::string status(const std::string& what) const;
  // A line of /proc/<pid>/limits: "Max cpu time", …
  [[nodiscard]] std::string limit(const std::string& what) const;
  // What it wrote to its log so far.
  const std::string& log();

 private:
  void readLog(std::chrono::milliseconds patience);

  pid_t pid = -1;
  kj::AutoCloseFd logEnd;
  std::string logText;
  bool logClosed = false;
  std::optional<int> ended;
};

// Role channel.
class SealedParser {
 public:
  explicit SealedParser(const ParserStart& start = {});
  ~SealedParser();
  SealedParser(const SealedParser&) = delete;
  SealedParser& operator=(const SealedParser&) = delete;

  bool waitSealed() { return process->waitSealed(); }
  int waitEnd() { return process->waitEnd(); }
  [[nodiscard]] std::size_t memory(const std::string& what) const { return process->memory(what); }
  [[nodiscard]] std::string status(const std::string& what) const { return process->status(what); }
  const std::string& log();

  // Where it dials guest `cid`.
  [[nodiscard]] std::string guestSocket(std::uint32_t cid) const;
  [[nodiscard]] const std::string& socket() const { return path; }

 private:
  std::string directory;
  std::string path;
  std::string fileLog;
  bool logsToFile;
  std::unique_ptr<SealedProcess> process;
};

// Role read, and the one connection to it.
class SealedReader {
 public:
  // `file` is handed over, and stays open here.
  SealedReader(kj::AsyncIoContext& io, int file, const ParserStart& start = {});
  ~SealedReader() noexcept(false);
  SealedReader(const SealedReader&) = delete;
  SealedReader& operator=(const SealedReader&) = delete;

  SealedProcess& process() { return *child; }
  // Closes the connection.
  void leave();
  protocols::RecordFile::Client file = nullptr;

 private:
  std::unique_ptr<SealedProcess> child;
  kj::Own<ipc::RpcPeer> peer;
  kj::Promise<void> running = nullptr;
};

// A connection to a SealedParser.
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
