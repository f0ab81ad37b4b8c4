// booted_range: real guests in their cells and the range's sandboxed parser, as cordon-launch
// starts them, and a client.
//
//   BootedRange range({.guests = 2});
//   auto channel = range.channel(0);
//   EXPECT_EQ(range.client().exec(channel, {.argv = {"uname"}}).out, "Linux\n");
//
// Ends with the object, and then expects (EXPECT_…) that nothing is left of it. A boot takes about
// 4 s of a whole core under TCG: tests share a range where they can (SetUpTestSuite).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kj/async-io.h>

#include "deploy/guest-exec/parser-client.h"
#include "tests/vm/launched.h"

namespace cordon::vm {

inline const std::string GUEST_KERNEL = CORDON_GUEST_IMAGE "/vmlinuz";
inline const std::string GUEST_INITRD = CORDON_GUEST_IMAGE "/initramfs.cpio.gz";

struct RangeOptions {
  unsigned guests = 1;
  std::uint32_t memoryMib = 256;  // of each guest
  bool waitReady = true;  // false: returns with VMM and parser started, the guest still booting
  std::vector<std::string> append = {};  // words for each guest's kernel
};

class BootedRange {
 public:
  // Throws std::runtime_error with the logs' ends if it does not come up.
  explicit BootedRange(const RangeOptions& options = {});
  ~BootedRange();
  BootedRange(const BootedRange&) = delete;
  BootedRange& operator=(const BootedRange&) = delete;

  [[nodiscard]] const std::string& id() const { return range; }
  [[nodiscard]] std::uint32_t cid(unsigned guest) const { return cids.at(guest); }
  [[nodiscard]] std::uint32_t uid(unsigned guest) const;
  [[nodiscard]] std::uint32_t parserUid() const;
  // <sockets directory>/<cid>/vsock.sock of a guest, on the host.
  [[nodiscard]] std::string guestSocket(unsigned guest) const;
  [[nodiscard]] std::string parserSocket() const;

  kj::AsyncIoContext& io() { return context; }
  // One connection to the parser; another is ParserClient(io(), parserSocket(), …).
  deploy::ParserClient& client() { return *parserClient; }
  // With the uid that belongs to the guest.
  protocols::GuestChannel::Client channel(unsigned guest);

  Launched& guestLauncher(unsigned guest) { return *guests.at(guest); }
  Launched& parserLauncher() { return *parser; }
  // The ends of all logs: what a failed test should print.
  [[nodiscard]] std::string logs() const;

  // Stops everything that still runs, in order, and expects each to end within its time. The
  // destructor does the same.
  void tearDown();
  // EXPECTs that no process, directory, mount or socket of this range is left.
  void expectNoResidue() const;

 private:
  std::uint32_t takeCid();

  TestFolder folder;
  std::string range;
  std::vector<std::uint32_t> cids;
  std::vector<int>
      cidLocks;  // held until the end, so that tests that run at once never share a CID
  kj::AsyncIoContext context;
  std::unique_ptr<Launched> parser;
  std::vector<std::unique_ptr<Launched>> guests;
  std::unique_ptr<deploy::ParserClient> parserClient;
  bool down = false;
};

// Processes with this real uid, zombies apart; each with its name (/proc/<pid>/comm).
struct HostProcess {
  pid_t pid = -1;
  std::string name;
};
std::vector<HostProcess> processesOf(std::uint32_t uid);
// The value of a line of /proc/<pid>/status, without blanks at its ends; empty where there is none.
std::string statusLine(pid_t pid, const std::string& key);

}  // namespace cordon::vm
