#include "services/parser/input-file.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/temporary-directory.h"

namespace cordon::parser {
namespace {

class InputFileTest : public ::testing::Test {
 protected:
  std::string make(const std::string& content) {
    std::string path = directory / "file";
    const kj::AutoCloseFd file(
        ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    EXPECT_EQ(::write(file.get(), content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
    return path;
  }
  static std::string refusalOf(int fd) {
    EXPECT_GE(fd, 0);
    const auto taken = InputFile::take(fd);
    const auto* refusal = std::get_if<FileRefusal>(&taken);
    return refusal == nullptr ? "none" : describe(*refusal);
  }

  tests::TemporaryDirectory directory;
};

TEST_F(InputFileTest, ReadsFromTheStartToTheEnd) {
  const int fd = ::open(make("0123456789").c_str(), O_RDONLY);
  // Whoever opened it may have read from it.
  ASSERT_EQ(::lseek(fd, 7, SEEK_SET), 7);
  auto taken = InputFile::take(fd);
  ASSERT_TRUE(std::holds_alternative<InputFile>(taken));
  EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
  auto& file = std::get<InputFile>(taken);
  std::array<std::byte, 6> buffer{};
  EXPECT_EQ(file.read(buffer), 6U);
  EXPECT_EQ(static_cast<char>(buffer[0]), '0');
  EXPECT_EQ(file.read(buffer), 4U);
  EXPECT_EQ(static_cast<char>(buffer[0]), '6');
  EXPECT_EQ(file.read(buffer), 0U);
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 7);
}

TEST_F(InputFileTest, TellsAFileThatCannotBeRead) {
  const int fd = ::open(make("0123456789").c_str(), O_RDONLY);
  auto taken = InputFile::take(fd);
  // Another file in its place, of which nothing can be read: what an I/O error comes to.
  const kj::AutoCloseFd folder(::open(directory.path.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::dup2(folder.get(), fd), fd);
  std::array<std::byte, 6> buffer{};
  EXPECT_EQ(std::get<InputFile>(taken).read(buffer), std::nullopt);
}

TEST_F(InputFileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(refusalOf(::open(directory.path.c_str(), O_RDONLY | O_DIRECTORY)), "not-regular");
  EXPECT_EQ(refusalOf(::open("/dev/null", O_RDONLY)), "not-regular");
  EXPECT_EQ(refusalOf(::socket(AF_UNIX, SOCK_STREAM, 0)), "not-regular");
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  EXPECT_EQ(refusalOf(pipe[0]), "not-regular");
  ::close(pipe[1]);
  const std::string fifo = directory.path + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(refusalOf(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK)), "not-regular");
}

TEST_F(InputFileTest, RefusesWhatIsNotOpenForReadingAlone) {
  const std::string path = make("x");
  EXPECT_EQ(refusalOf(::open(path.c_str(), O_RDONLY)), "none");
  EXPECT_EQ(refusalOf(::open(path.c_str(), O_RDWR)), "writable");
  EXPECT_EQ(refusalOf(::open(path.c_str(), O_WRONLY)), "not-readable");
  EXPECT_EQ(refusalOf(::open(path.c_str(), O_PATH)), "not-readable");
  EXPECT_EQ(refusalOf(1000), "not-open");
}

}  // namespace
}  // namespace cordon::parser
