#include "services/parser/listening.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace cordon::parser {
namespace {

class Listening : public ::testing::Test {
 protected:
  Listening() {
    std::string pattern = "/tmp/cordon-listening-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    directory = pattern;
    path = directory + "/s";
  }
  ~Listening() override { std::filesystem::remove_all(directory); }

  std::variant<Endpoint, ListenFailure> open() { return openEndpoint(ListenAtPath{path}); }
  // 0 or errno.
  [[nodiscard]] int connect() const {
    const kj::AutoCloseFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0
               ? 0
               : errno;
  }

  std::string directory;
  std::string path;
};

ListenError errorOf(const std::variant<Endpoint, ListenFailure>& result) {
  const auto* failure = std::get_if<ListenFailure>(&result);
  EXPECT_NE(failure, nullptr) << "it listens";
  return failure == nullptr ? ListenError::SYSTEM : failure->error;
}

TEST_F(Listening, MakesASocketForItsOwnerAndGroup) {
  const auto endpoint = open();
  ASSERT_TRUE(std::holds_alternative<Endpoint>(endpoint));
  EXPECT_EQ(connect(), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0660u);
  const int fd = std::get<Endpoint>(endpoint).socket;
  EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Listening, LeavesALiveSocketAlone) {
  const auto first = open();
  ASSERT_TRUE(std::holds_alternative<Endpoint>(first));
  EXPECT_EQ(errorOf(open()), ListenError::LIVE_SOCKET);
  EXPECT_EQ(connect(), 0);
}

TEST_F(Listening, LeavesALiveSocketOfAServerWithoutLockAlone) {
  const auto first = open();
  ASSERT_TRUE(std::holds_alternative<Endpoint>(first));
  std::filesystem::remove(path + ".lock");
  EXPECT_EQ(errorOf(open()), ListenError::LIVE_SOCKET);
  EXPECT_EQ(connect(), 0);
}

TEST_F(Listening, ReplacesWhatADeadOneLeft) {
  ASSERT_TRUE(std::holds_alternative<Endpoint>(open()));
  EXPECT_EQ(connect(), ECONNREFUSED);
  const auto second = open();
  EXPECT_TRUE(std::holds_alternative<Endpoint>(second));
  EXPECT_EQ(connect(), 0);
}

TEST_F(Listening, NeverRemovesWhatIsNoSocket) {
  std::ofstream(path) << "precious";
  EXPECT_EQ(errorOf(open()), ListenError::NO_SOCKET);
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
  std::filesystem::remove(path);
  std::filesystem::create_symlink(directory + "/elsewhere", path);
  EXPECT_EQ(errorOf(open()), ListenError::NO_SOCKET);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(Listening, SaysWhichStepFailed) {
  const auto result = openEndpoint(ListenAtPath{directory + "/none/s"});
  ASSERT_TRUE(std::holds_alternative<ListenFailure>(result));
  EXPECT_EQ(describe(std::get<ListenFailure>(result)), "system open lock ENOENT");
}

TEST_F(Listening, AdoptsAListenerAndNothingElse) {
  auto made = open();
  const int listener = ::dup(std::get<Endpoint>(made).socket);
  const auto adopted = openEndpoint(ListenOnFd{listener});
  ASSERT_TRUE(std::holds_alternative<Endpoint>(adopted));
  EXPECT_TRUE(std::get<Endpoint>(adopted).isListener);
  EXPECT_NE(::fcntl(listener, F_GETFD) & FD_CLOEXEC, 0);

  EXPECT_EQ(errorOf(openEndpoint(ServeFd{listener})), ListenError::WRONG_SOCKET);
  EXPECT_EQ(errorOf(openEndpoint(ListenOnFd{9999})), ListenError::WRONG_SOCKET);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  EXPECT_EQ(errorOf(openEndpoint(ListenOnFd{pipe[0]})), ListenError::WRONG_SOCKET);
  EXPECT_EQ(errorOf(openEndpoint(ServeFd{pipe[0]})), ListenError::WRONG_SOCKET);
  ::close(pipe[0]);
  ::close(pipe[1]);
  const kj::AutoCloseFd inet(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(errorOf(openEndpoint(ServeFd{inet})), ListenError::WRONG_SOCKET);
  const kj::AutoCloseFd datagram(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(errorOf(openEndpoint(ServeFd{datagram})), ListenError::WRONG_SOCKET);
}

TEST_F(Listening, AdoptsAConnection) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const kj::AutoCloseFd other(pair[1]);
  const auto adopted = openEndpoint(ServeFd{pair[0]});
  ASSERT_TRUE(std::holds_alternative<Endpoint>(adopted));
  EXPECT_FALSE(std::get<Endpoint>(adopted).isListener);
  EXPECT_NE(::fcntl(pair[0], F_GETFL) & O_NONBLOCK, 0);
}

}  // namespace
}  // namespace cordon::parser
