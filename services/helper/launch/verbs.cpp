#include "services/helper/launch/verbs.h"

#include <array>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "services/helper/launch/error.h"
#include "services/helper/launch/identity.h"
#include "services/helper/launch/kvm-probe.h"
#include "services/helper/launch/log.h"
#include "services/helper/launch/qemu-arguments.h"
#include "services/helper/launch/range-directory.h"
#include "services/helper/launch/relay.h"
#include "services/helper/launch/supervise.h"
#include "services/helper/launch/view.h"

namespace cordon::launch {
namespace {

constexpr int FIRST_FD = 3;  // the numbers under which a program finds what it was given
constexpr int SECOND_FD = 4;
constexpr const char* VMM_IN_VIEW = "/usr/bin/qemu-system-x86_64";
constexpr const char* VSOCK_IN_VIEW = "/usr/bin/cordon-vsock";
constexpr const char* PARSER_IN_VIEW = "/usr/bin/cordon-parser";

void requireRoot() {
  if (geteuid() != 0)
    throw LaunchError(Code::NOT_ROOT, "require-root", "uid " + std::to_string(geteuid()));
}

// Opened once and used by descriptor from then on: a path could name another file later.
UniqueFd openFile(Code code, const std::string& path, mode_t needed, const char* why) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw LaunchError(code, "open-files", path, errno);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) failStep("open-files", path);
  if (!S_ISREG(status.st_mode))
    throw LaunchError(code, "open-files", path, 0, "not a regular file");
  if ((status.st_mode & needed) != needed) throw LaunchError(code, "open-files", path, 0, why);
  return fd;
}
UniqueFd openImage(const std::string& path) {
  return openFile(Code::IMAGE_MISSING, path, S_IROTH,
                  "must be readable by everyone: the guest's uid reads it");
}
UniqueFd openBinary(const std::string& path) {
  return openFile(Code::BINARY_MISSING, path, S_IROTH | S_IXOTH, "must be executable by everyone");
}

struct Cells {
  std::vector<Cell> cells;
  std::vector<std::unique_ptr<Relay>> relays;

  void start(CellPlan plan) {
    Pipe output = makeRelayPipe();
    plan.output = std::move(output.writer);
    relays.push_back(
        std::make_unique<LogRelay>(plan.name, std::move(output.reader), STDERR_FILENO));
    cells.push_back(Cell::start(std::move(plan)));
  }
};

class GuestLaunch {
 public:
  explicit GuestLaunch(const GuestOptions& given)
      : options(given), identity(guestIdentity(given.cid)) {}

  void openFiles() {
    kernel = openImage(options.kernel);
    initrd = openImage(options.initrd);
    vmmBinary = openBinary(options.vmmBinary);
    vsockBinary = openBinary(options.vsockBinary);
    if (options.console) {
      consoleFile =
          UniqueFd(open(options.console->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!consoleFile) failStep("open-files", *options.console);
    }
  }

  void chooseAccelerator() {
    if (options.accel == Accel::TCG) return;
    KvmProbe probe = probeKvm();
    kvm = probe.usable;
    if (kvm) return;
    if (options.accel == Accel::KVM)
      throw LaunchError(Code::KVM_MISSING, "choose-accelerator", "--accel kvm", 0, probe.why);
    warn("accel-tcg: " + probe.why +
         "; the guest runs under TCG, which is slower and no security boundary");
  }

  void makeDirectory() {
    range.emplace(options.runtimeDir, options.range);
    std::string cid = std::to_string(options.cid);
    directory.emplace(range->fd(), cid, range->path() + "/" + cid, identity,
                      channelParserIdentity(options.firstCid).gid, 02710);
  }

  void listen() {
    listener = listenAs(directory->fd(), directory->path() + "/vsock.sock", "vsock.sock", identity,
                        identity.gid, 0117);
  }

  void connectDevice() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      failStep("connect-device", "vhost-user");
    frontEnd = UniqueFd(ends[0]);
    backEnd = UniqueFd(ends[1]);
  }

  void startVsock() {
    CellPlan plan;
    plan.name = "vsock";
    plan.identity = identity;
    addLibraries(plan.view);
    addNull(plan.view);
    plan.view.proc = true;  // it reads its own status there: it refuses to serve unconfined
    plan.view.binds.push_back(bindOf(vsockBinary, VSOCK_IN_VIEW, Execute::YES));
    plan.view.proc = true;  // as for the parser: it checks its own confinement
    plan.argv = {VSOCK_IN_VIEW,
                 "--vhost-user-fd",
                 std::to_string(FIRST_FD),
                 "--listen-fd",
                 std::to_string(SECOND_FD),
                 "--cid",
                 std::to_string(options.cid)};
    plan.descriptors.push_back({std::move(backEnd), FIRST_FD});
    plan.descriptors.push_back({std::move(listener), SECOND_FD});
    running.start(std::move(plan));
  }

  void startVmm() {
    CellPlan plan;
    plan.name = "vmm";
    plan.identity = identity;
    addLibraries(plan.view);
    addPath(plan.view, "/usr/share/qemu", Execute::NO);
    addPath(plan.view, "/usr/share/seabios", Execute::NO);
    addNull(plan.view);
    if (kvm) addKvm(plan.view);
    plan.view.binds.push_back(bindOf(vmmBinary, VMM_IN_VIEW, Execute::YES));
    plan.view.binds.push_back(bindOf(kernel, "/img/0", Execute::NO));
    plan.view.binds.push_back(bindOf(initrd, "/img/1", Execute::NO));

    QemuMachine machine;
    machine.kvm = kvm;
    machine.cpus = options.cpus;
    machine.memoryMib = options.memoryMib;
    machine.kernelImage = 0;
    machine.initrdImage = 1;
    machine.append = options.append;
    machine.vhostUserFd = FIRST_FD;
    plan.descriptors.push_back({std::move(frontEnd), FIRST_FD});
    if (consoleFile) {
      Pipe console = makeRelayPipe();
      running.relays.push_back(
          std::make_unique<ConsoleRelay>(std::move(console.reader), std::move(consoleFile)));
      plan.descriptors.push_back({std::move(console.writer), SECOND_FD});
      machine.consoleFd = SECOND_FD;
    }
    plan.argv = qemuArguments(VMM_IN_VIEW, machine);
    running.start(std::move(plan));
  }

  Ending superviseBoth(const UniqueFd& signals) {
    say("guest " + std::to_string(options.cid) + ": running under uid " +
        std::to_string(identity.uid) + ", " + (kvm ? "kvm" : "tcg"));
    Outcome outcome = supervise(std::move(running.cells), std::move(running.relays), signals);
    const Ended& first = outcome.ended.front();
    say("guest " + std::to_string(options.cid) + ": ended: vmm " + outcome.of("vmm").describe() +
        ", vsock " + outcome.of("vsock").describe());
    // Without its device the guest was lost: how the VMM took our SIGTERM then says nothing.
    if (!outcome.asked && first.name == "vsock") {
      throw LaunchError(Code::CELL_DIED, "supervise", "vsock", 0, first.ending.describe());
    }
    return outcome.of("vmm");
  }

 private:
  void addKvm(View& view) const {
    struct stat status {};
    if (stat("/dev/kvm", &status) != 0) failStep("start-vmm", "/dev/kvm");
    view.nodes.push_back({"kvm", status.st_rdev, identity.uid, 0600});
  }

  const GuestOptions& options;
  Identity identity;
  bool kvm = false;
  UniqueFd kernel, initrd, vmmBinary, vsockBinary, consoleFile;
  std::optional<RangeDirectory> range;
  std::optional<OwnedDirectory> directory;
  UniqueFd listener, frontEnd, backEnd;
  Cells running;  // after the directories: it ends before they go
};

}  // namespace

Ending runGuest(const GuestOptions& options) {
  requireRoot();
  GuestLaunch guest(options);
  // All that the command line names is there before anything is made.
  guest.openFiles();
  // Whoever has the uid already could pose as this guest's device.
  refuseBusyUid(guestIdentity(options.cid).uid);
  // May take PROBE_DEADLINE, with nothing to undo yet.
  guest.chooseAccelerator();
  // From here on a signal is an orderly end.
  UniqueFd signals = catchSignals();
  guest.makeDirectory();
  // As the guest's uid, and before the device runs: a listener's peer credentials are those of
  // listen().
  guest.listen();
  guest.connectDevice();
  // The device first: the VMM talks to it before it runs the guest.
  guest.startVsock();
  guest.startVmm();
  return guest.superviseBoth(signals);
}

Ending runParser(const ParserOptions& options) {
  requireRoot();
  UniqueFd binary = openBinary(options.parserBinary);
  Identity identity = channelParserIdentity(options.firstCid);
  refuseBusyUid(identity.uid);
  UniqueFd signals = catchSignals();
  // Before any guest has its directory there: the parser outlives no range and waits for all of its
  // guests.
  RangeDirectory range(options.runtimeDir, options.range);

  std::size_t slash = options.listenPath.rfind('/');
  std::string folder = options.listenPath.substr(0, slash);
  std::size_t parentSlash = folder.rfind('/');
  if (slash == 0 || parentSlash == 0) {
    throw LaunchError(Code::BAD_ARGUMENT, "make-directory", options.listenPath, 0,
                      "must lie two folders deep");
  }
  UniqueFd parent = openRootDirectory(folder.substr(0, parentSlash));
  OwnedDirectory directory(parent, folder.substr(parentSlash + 1), folder, identity, identity.gid,
                           0711);
  std::vector<std::uint32_t> allowed = options.allowUids;
  if (allowed.empty()) allowed.push_back(geteuid());
  bool rootAlone = allowed == std::vector<std::uint32_t>{0};

  CellPlan plan;
  plan.name = "parser";
  plan.identity = identity;
  addLibraries(plan.view);
  addNull(plan.view);
  plan.view.proc = true;  // it reads its own status there and refuses to serve if its confinement
                          // is not complete
  plan.view.binds.push_back(bindOf(binary, PARSER_IN_VIEW, Execute::YES));
  plan.view.binds.push_back(bindOf(range.fd(), "/run/cordon/ranges/" + options.range, Execute::NO));
  plan.argv = {PARSER_IN_VIEW,
               "--role",
               "channel",
               "--listen",
               "fd:" + std::to_string(FIRST_FD),
               "--sockets-dir",
               "/run/cordon/ranges/" + options.range};
  for (std::uint32_t uid : allowed) {
    plan.argv.push_back("--allow-uid");
    plan.argv.push_back(std::to_string(uid));
  }
  plan.descriptors.push_back(
      {listenAs(directory.fd(), options.listenPath, options.listenPath.substr(slash + 1), identity,
                identity.gid, rootAlone ? 0177 : 0111),
       FIRST_FD});
  Cells running;
  running.start(std::move(plan));
  say("parser " + options.range + ": running under uid " + std::to_string(identity.uid) +
      ", listens at " + options.listenPath);
  Outcome outcome = supervise(std::move(running.cells), std::move(running.relays), signals);
  say("parser " + options.range + ": ended: " + outcome.of("parser").describe());
  return outcome.of("parser");
}

}  // namespace cordon::launch
