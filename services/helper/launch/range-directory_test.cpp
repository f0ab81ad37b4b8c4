#include "services/helper/launch/range-directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/helper/launch/error.h"

namespace cordon::launch {
namespace {

constexpr Identity GUEST = guestIdentity(64002);
constexpr gid_t PARSER = channelParserIdentity(64002).gid;

class RangeDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "SKIPPED(host-lacks:root): gives directories to other uids";
    std::string pattern = "/tmp/cordon-range-test.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    top = pattern;
  }
  void TearDown() override {
    if (top.empty()) return;
    rmdir((top + "/ranges").c_str());
    // Fails where a test left something.
    EXPECT_EQ(rmdir(top.c_str()), 0) << top << ": " << strerror(errno);
  }
  static struct stat statOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status;
  }
  static bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
  std::unique_ptr<OwnedDirectory> guestDirectory(const RangeDirectory& range,
                                                 const std::string& cid = "64002") {
    return std::make_unique<OwnedDirectory>(range.fd(), cid, range.path() + "/" + cid, GUEST,
                                            PARSER, 02710);
  }
  std::string top;
};

TEST_F(RangeDirectoryTest, OwnersAndModesAreTheContract) {
  RangeDirectory range(top, "0123abcd");
  auto guest = guestDirectory(range);
  for (const std::string& path : {top + "/ranges", range.path()}) {
    EXPECT_EQ(statOf(path).st_uid, 0u) << path;
    EXPECT_EQ(statOf(path).st_mode, S_IFDIR | 0711u) << path;
  }
  EXPECT_EQ(guest->path(), top + "/ranges/0123abcd/64002");
  EXPECT_EQ(statOf(guest->path()).st_uid, GUEST.uid);
  EXPECT_EQ(statOf(guest->path()).st_gid, PARSER);
  EXPECT_EQ(statOf(guest->path()).st_mode, S_IFDIR | 02710u);
}

TEST_F(RangeDirectoryTest, TheListenersPeerIsTheGuest) {
  RangeDirectory range(top, "0123abcd");
  auto guest = guestDirectory(range);
  std::string path = guest->path() + "/vsock.sock";
  UniqueFd listener = listenAs(guest->fd(), path, "vsock.sock", GUEST, GUEST.gid, 0117);
  EXPECT_EQ(statOf(path).st_uid, GUEST.uid);
  EXPECT_EQ(statOf(path).st_gid, PARSER);
  EXPECT_EQ(statOf(path).st_mode, S_IFSOCK | 0660u);

  UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ucred peer{};
  socklen_t size = sizeof peer;
  ASSERT_EQ(getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
  EXPECT_EQ(peer.uid, GUEST.uid);
  EXPECT_EQ(peer.gid, GUEST.gid);
}

TEST_F(RangeDirectoryTest, ListeningWhereTheOwnerMayNotWriteNamesTheErrno) {
  RangeDirectory range(top, "0123abcd");
  try {
    listenAs(range.fd(), range.path() + "/s", "s", GUEST, GUEST.gid, 0117);
    FAIL() << "bound a socket in root's directory";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::STEP_FAILED);
    EXPECT_EQ(error.step, "listen-as");
    EXPECT_EQ(error.error, EACCES);
  }
}

TEST_F(RangeDirectoryTest, NothingIsLeft) {
  {
    RangeDirectory range(top, "0123abcd");
    auto guest = guestDirectory(range);
    UniqueFd listener =
        listenAs(guest->fd(), guest->path() + "/vsock.sock", "vsock.sock", GUEST, GUEST.gid, 0117);
  }
  EXPECT_FALSE(exists(top + "/ranges/0123abcd"));
}

TEST_F(RangeDirectoryTest, TheLastOneOutRemovesTheRange) {
  std::optional<RangeDirectory> first(std::in_place, top, "0123abcd");
  std::optional<RangeDirectory> second(std::in_place, top, "0123abcd");
  first.reset();
  EXPECT_TRUE(exists(top + "/ranges/0123abcd"));
  second.reset();
  EXPECT_FALSE(exists(top + "/ranges/0123abcd"));
}

TEST_F(RangeDirectoryTest, ASecondLauncherOfTheSameGuestIsRefused) {
  RangeDirectory range(top, "0123abcd");
  auto guest = guestDirectory(range);
  try {
    guestDirectory(range);
    FAIL() << "two launchers share a guest";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::GUEST_EXISTS);
  }
  EXPECT_TRUE(exists(guest->path()));
}

// What a launcher leaves that was killed: the guest's directory and its socket, without a lock.
TEST_F(RangeDirectoryTest, TakesOverWhatADeadLauncherLeft) {
  RangeDirectory range(top, "0123abcd");
  std::string path = range.path() + "/64002";
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  UniqueFd file(open((path + "/vsock.sock").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(chown(path.c_str(), GUEST.uid, PARSER), 0);
  auto guest = guestDirectory(range);
  EXPECT_FALSE(exists(path + "/vsock.sock"));
  EXPECT_EQ(statOf(path).st_mode, S_IFDIR | 02710u);
}

TEST_F(RangeDirectoryTest, LeavesAForeignDirectoryAsItIs) {
  RangeDirectory range(top, "0123abcd");
  std::string path = range.path() + "/64002";
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  { UniqueFd file(open((path + "/precious").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }
  try {
    guestDirectory(range);
    FAIL() << "took over a directory of someone else";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::STEP_FAILED);
    EXPECT_EQ(error.step, "replace-directory");
    EXPECT_EQ(error.error, ENOTEMPTY);
  }
  EXPECT_TRUE(exists(path + "/precious"));
  EXPECT_EQ(unlink((path + "/precious").c_str()), 0);
  EXPECT_EQ(rmdir(path.c_str()), 0);
}

TEST_F(RangeDirectoryTest, RefusesARuntimeDirectoryThatOthersMayWriteTo) {
  ASSERT_EQ(chmod(top.c_str(), 0777), 0);
  try {
    RangeDirectory range(top, "0123abcd");
    FAIL() << "trusted a directory that anyone may write to";
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.code, Code::STEP_FAILED);
    EXPECT_EQ(error.subject, top);
  }
}

TEST_F(RangeDirectoryTest, RefusesALinkInItsPlace) {
  ASSERT_EQ(symlink("/etc", (top + "/ranges").c_str()), 0);
  EXPECT_THROW(RangeDirectory(top, "0123abcd"), LaunchError);
  EXPECT_EQ(unlink((top + "/ranges").c_str()), 0);
}

}  // namespace
}  // namespace cordon::launch
