// cordon-vsock under a real QEMU with a real Debian kernel, started by cordon-launch: production
// uids, cells, policy.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <random>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "tests/support/residue.h"

namespace cordon::vm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t CID = 31977;
constexpr uid_t GUEST_UID = 1879048192 + CID;
constexpr std::chrono::seconds PATIENCE{120};  // TCG on a busy machine

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    constexpr char DIGITS[] = "0123456789abcdef";
    text += DIGITS[digest[i] >> 4];
    text += DIGITS[digest[i] & 15];
  }
  return text;
}

class Client {
 public:
  explicit Client(int socket) : fd(socket) {}
  Client(Client&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  ~Client() {
    if (fd >= 0) ::close(fd);
  }
  explicit operator bool() const { return fd >= 0; }
  int get() const { return fd; }
  // Everything until the end of file.
  std::string readAll() const {
    std::string all;
    std::vector<char> bytes(1 << 20);
    ssize_t got;
    while ((got = ::read(fd, bytes.data(), bytes.size())) > 0)
      all.append(bytes.data(), static_cast<std::size_t>(got));
    return all;
  }
  std::string read(std::size_t most) const {
    std::string bytes(most, '\0');
    const ssize_t got = ::read(fd, bytes.data(), most);
    if (got < 0) return std::string("error: ") + std::strerror(errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return true;
  }

 private:
  int fd;
};

// One guest for all tests: it boots in about ten seconds.
class BootedGuest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory = std::filesystem::temp_directory_path() / ("cv" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory);
    const std::string image = directory / "image";
    const std::string build = std::string(CORDON_SOURCE_DIR "/deploy/guest-image/build ") + image +
                              " --agent " + CORDON_VSOCK_GUEST + " >&2";
    ASSERT_EQ(std::system(build.c_str()), 0) << build;
    const pid_t parent = ::getpid();
    launcher = ::fork();
    if (launcher == 0) {
      tests::dieWith(parent, SIGTERM);
      const std::string kernel = image + "/vmlinuz";
      const std::string initrd = image + "/initramfs.cpio.gz";
      const std::string console = directory / "console";
      const std::string cid = std::to_string(CID);
      ::execl(CORDON_LAUNCH, "cordon-launch", "guest", "--range", RANGE, "--cid", cid.c_str(),
              "--kernel", kernel.c_str(), "--initrd", initrd.c_str(), "--runtime-dir",
              directory.c_str(), "--console", console.c_str(), "--accel", "tcg", "--append",
              "quiet", nullptr);
      ::_exit(127);
    }
    ASSERT_TRUE(waitFor(7000)) << "the guest never answered:\n" << contents(directory / "console");
  }
  static void TearDownTestSuite() {
    if (launcher > 0) {
      ::kill(launcher, SIGTERM);
      int status = 0;
      ::waitpid(launcher, &status, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  static std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Connected to the guest's port, or nothing where the device closed without OK.
  static Client dial(unsigned port) {
    Client client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval deadline{PATIENCE.count(), 0};
    ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory / "ranges" / RANGE / std::to_string(CID) / "vsock.sock";
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      return Client(-1);
    if (!client.write("CONNECT " + std::to_string(port) + "\n")) return Client(-1);
    std::string line;
    while (!line.ends_with('\n')) {
      const std::string byte = client.read(1);
      if (byte.size() != 1) return Client(-1);
      line += byte;
    }
    return line.starts_with("OK ") ? std::move(client) : Client(-1);
  }
  // A guest that boots, or whose driver is away, answers after a while: the wait is for the guest,
  // not for us.
  static bool waitFor(unsigned port) {
    for (const auto end = Clock::now() + PATIENCE; Clock::now() < end;) {
      if (dial(port)) return true;
      ::poll(nullptr, 0, 100);
    }
    return false;
  }
  static std::string ask(unsigned port) {
    const Client client = dial(port);
    return client ? client.readAll() : "no connection";
  }
  static void expectEcho(std::string_view bytes) {
    const Client client = dial(7000);
    ASSERT_TRUE(client);
    std::thread writer([&] {
      client.write(bytes);
      ::shutdown(client.get(), SHUT_WR);
    });
    const std::string echoed = client.readAll();
    writer.join();
    EXPECT_EQ(echoed.size(), bytes.size());
    EXPECT_EQ(sha256(echoed), sha256(bytes));
  }
  static bool waitForConsole(const std::string& line) {
    for (const auto end = Clock::now() + PATIENCE; Clock::now() < end;) {
      if (contents(directory / "console").find(line) != std::string::npos) return true;
      ::poll(nullptr, 0, 50);
    }
    return false;
  }

  static constexpr const char* RANGE = "c0cd0001";
  static inline std::filesystem::path directory;
  static inline pid_t launcher = -1;
};

TEST_F(BootedGuest, EchoesSixtyFourMebibytesUnchanged) {
  std::string bytes(64U << 20, '\0');
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t value = random();
    std::memcpy(bytes.data() + i, &value, 8);
  }
  expectEcho(bytes);
}

TEST_F(BootedGuest, ResetsAGuestThatDialsTheHost) {
  EXPECT_EQ(ask(7003), "ECONNRESET\n");
}

TEST_F(BootedGuest, ClosesWithoutOkWhereNothingListens) {
  EXPECT_FALSE(dial(9999));
}

TEST_F(BootedGuest, ListensAsTheGuestsOwnUid) {
  const Client client = dial(7004);
  ASSERT_TRUE(client);
  ucred peer{};
  socklen_t size = sizeof(peer);
  ASSERT_EQ(::getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
  EXPECT_EQ(peer.uid, GUEST_UID);
}

TEST_F(BootedGuest, HoldsNothingBesidesItsConfinement) {
  std::string status;
  for (const auto& each : std::filesystem::directory_iterator("/proc")) {
    const std::string text = contents(each.path() / "status");
    if (text.starts_with("Name:\tcordon-vsock\n") &&
        text.find(std::to_string(GUEST_UID)) != std::string::npos) {
      status = text;
    }
  }
  ASSERT_NE(status, "") << "no cordon-vsock of uid " << GUEST_UID;
  for (const char* line :
       {"\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n",
        "\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n",
        "\nCapAmb:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"}) {
    EXPECT_NE(status.find(line), std::string::npos) << line << status;
  }
}

TEST_F(BootedGuest, CarriesManyConnectionsAtOnce) {
  std::vector<Client> all;
  for (int i = 0; i < 64; ++i) {
    all.push_back(dial(7000));
    ASSERT_TRUE(all.back()) << i;
    ASSERT_TRUE(all.back().write("number " + std::to_string(i)));
  }
  for (int i = 63; i >= 0; --i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)].read(100), "number " + std::to_string(i));
}

TEST_F(BootedGuest, SurvivesAReloadOfTheGuestsDriver) {
  EXPECT_EQ(ask(7001), "reloading\n");
  ASSERT_TRUE(waitForConsole("vsock-guest: reloaded 0")) << contents(directory / "console");
  ASSERT_TRUE(waitFor(7000));
  expectEcho("after the driver came back");
}

TEST_F(BootedGuest, EndsConnectionsWithTheGuestsDeviceAndSurvivesItsRebind) {
  const Client held = dial(7004);
  ASSERT_TRUE(held);
  EXPECT_EQ(ask(7002), "rebinding\n");
  ASSERT_TRUE(waitForConsole("vsock-guest: rebound 0")) << contents(directory / "console");
  EXPECT_EQ(held.read(1), "") << "a connection outlived its driver";
  ASSERT_TRUE(waitFor(7000));
  expectEcho("after the device came back");
}

}  // namespace
}  // namespace cordon::vm
