// read_file and write_file against a real file system.
#include <cstring>
#include <filesystem>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/channel/encoder.h"
#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

using channel::Error;
using channel::FileData;
using channel::Ok;
using channel::ReadFile;
using channel::WriteFile;

class FilesTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (!IsSkipped()) start();
  }

  Got read(const std::string& path, std::optional<std::int64_t> maxBytes = std::nullopt) const {
    ReadFile request;
    request.path = path;
    request.maxBytes = maxBytes;
    return ask(request);
  }
  Got write(const std::string& path, std::string_view content,
            std::optional<std::int64_t> mode = std::nullopt) const {
    WriteFile request;
    request.path = path;
    request.mode = mode;
    request.dataSize = static_cast<std::int64_t>(content.size());
    return ask(request, content);
  }
  std::string home(const std::string& name) const { return world.home("agent") + "/" + name; }
  static mode_t modeOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
};

TEST_F(FilesTest, AFileComesBackAsItWasWritten) {
  std::string content(100000, '\0');
  for (std::size_t at = 0; at < content.size(); ++at) content[at] = static_cast<char>(at * 31);
  write("note", content).as<Ok>();
  auto got = read("note");
  EXPECT_EQ(got.as<FileData>(), (FileData{100000, false, 100000}));
  EXPECT_EQ(got.bulk, content);
  EXPECT_EQ(readWhole(home("note")), content);
  write("note", "short").as<Ok>();
  EXPECT_EQ(readWhole(home("note")), "short");
}

TEST_F(FilesTest, AnEmptyFileHasNoBulk) {
  write("empty", "").as<Ok>();
  EXPECT_EQ(read("empty").as<FileData>(), (FileData{0, false, std::nullopt}));
}

TEST_F(FilesTest, LargeContentGoesThroughWhole) {
  std::string content(50u << 20, 'q');
  for (std::size_t at = 0; at < content.size(); at += 997) content[at] = static_cast<char>(at);
  write("large", content).as<Ok>();
  auto got = read("large", 100 << 20);
  EXPECT_EQ(got.as<FileData>().size, 50 << 20);
  EXPECT_TRUE(got.bulk == content);
}

TEST_F(FilesTest, ReadsStopAtTheLimit) {
  std::string content(10000, 'c');
  write("file", content).as<Ok>();
  auto got = read("file", 4096);
  EXPECT_EQ(got.as<FileData>(), (FileData{4096, true, 4096}));
  EXPECT_EQ(got.bulk, content.substr(0, 4096));
  EXPECT_EQ(read("file", 10000).as<FileData>(), (FileData{10000, false, 10000}));
  EXPECT_EQ(read("file", 9999).as<FileData>(), (FileData{9999, true, 9999}));
  EXPECT_EQ(read("file", 0).as<FileData>(), (FileData{0, true, std::nullopt}));
  EXPECT_EQ(read("empty-not-there", 0).as<Error>().errnoName, "ENOENT");
}

TEST_F(FilesTest, CharacterDevicesAreBoundedByTheLimit) {
  EXPECT_EQ(read("/dev/zero").as<FileData>(), (FileData{16777216, true, 16777216}));
  EXPECT_EQ(read("/dev/zero", 5).bulk, std::string(5, '\0'));
  EXPECT_EQ(read("/dev/null").as<FileData>(), (FileData{0, false, std::nullopt}));
  write("/dev/null", "gone").as<Ok>();
}

TEST_F(FilesTest, FilesWithoutASizeAreRead) {
  EXPECT_EQ(read("/proc/version").bulk, readWhole("/proc/version"));
}

TEST_F(FilesTest, FifosAndSocketsAreEIOAndNeverAWait) {
  ASSERT_EQ(::mkfifo(home("fifo").c_str(), 0666), 0);
  ASSERT_EQ(::chmod(home("fifo").c_str(), 0666), 0);
  Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, home("socket").c_str(), sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::chmod(home("socket").c_str(), 0666), 0);
  for (const char* path : {"fifo", "socket"}) {
    EXPECT_EQ(read(path).as<Error>().errnoName, "EIO") << path;
    EXPECT_EQ(write(path, "x").as<Error>().errnoName, "EIO") << path;
  }
}

TEST_F(FilesTest, ErrorsAreNamedAndNameThePath) {
  write("file", "x").as<Ok>();
  std::filesystem::create_directory(home("closed"));
  ASSERT_EQ(::chmod(home("closed").c_str(), 0700), 0);
  struct Case {
    std::string path;
    std::string onRead;
    std::string onWrite;
  };
  for (const auto& [path, onRead, onWrite] : {
           Case{"missing", "ENOENT", ""},
           Case{"/etc", "EISDIR", "EISDIR"},
           Case{"file/below", "ENOTDIR", "ENOTDIR"},
           Case{"closed/file", "EACCES", "EACCES"},
           Case{"/etc/new-file", "ENOENT", "EACCES"},
           Case{"/etc/new/file", "ENOENT", "EACCES"},
           Case{std::string(300, 'n'), "EIO", "EIO"},
       }) {
    auto error = read(path).as<Error>();
    EXPECT_EQ(error.errnoName, onRead) << path;
    EXPECT_NE(error.message.find(path), std::string::npos) << error.message;
    if (onWrite.empty()) continue;
    EXPECT_EQ(write(path, "y").as<Error>().errnoName, onWrite) << path;
  }
  EXPECT_NE(read("/etc").as<Error>().message.find("directory"), std::string::npos);
}

TEST_F(FilesTest, ADirectoryIsEISDIREvenWhereItMayNotBeRead) {
  std::filesystem::create_directory(home("locked"));
  ASSERT_EQ(::chmod(home("locked").c_str(), 0), 0);
  EXPECT_EQ(read("locked").as<Error>().errnoName, "EISDIR");
}

TEST_F(FilesTest, AFullDiskIsENOSPCAndAReadOnlyOneEROFS) {
  std::string small = world.root + "/small";
  std::filesystem::create_directories(small);
  coverWithTmpfs(small, 64 << 10);
  start();
  EXPECT_EQ(write(small + "/file", std::string(1 << 20, 'f')).as<Error>().errnoName, "ENOSPC");
  ASSERT_EQ(::mount(nullptr, small.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
  start();
  EXPECT_EQ(write(small + "/other", "x").as<Error>().errnoName, "EROFS");
}

TEST_F(FilesTest, ParentsAreMadeWithMode0755) {
  write("a/b/c/file", "x").as<Ok>();
  for (const char* path : {"a", "a/b", "a/b/c"}) EXPECT_EQ(modeOf(home(path)), 0755U) << path;
  EXPECT_EQ(readWhole(home("a/b/c/file")), "x");
  write(home("d//e/./file"), "y").as<Ok>();
  EXPECT_EQ(readWhole(home("d/e/file")), "y");
}

TEST_F(FilesTest, ModesAre0644OrExactlyAsAsked) {
  write("plain", "x").as<Ok>();
  EXPECT_EQ(modeOf(home("plain")), 0644U);
  for (std::int64_t mode : {0600, 0, 0777, 04755, 01777, 07777, 0666}) {
    std::string name = "mode-" + std::to_string(mode);
    write(name, "x", mode).as<Ok>();
    EXPECT_EQ(modeOf(home(name)), static_cast<mode_t>(mode)) << name;
  }
  // Also on a file that exists; without a mode it keeps what it has.
  write("plain", "y", 0600).as<Ok>();
  EXPECT_EQ(modeOf(home("plain")), 0600U);
  write("plain", "z").as<Ok>();
  EXPECT_EQ(modeOf(home("plain")), 0600U);
}

TEST_F(FilesTest, AModeOfAnothersFileIsEACCESAndLeavesItAlone) {
  std::string other = world.root + "/others";
  writeWhole(other, "old");
  ASSERT_EQ(::chmod(other.c_str(), 0666), 0);
  EXPECT_EQ(write(other, "new", 0600).as<Error>().errnoName, "EACCES");
  EXPECT_EQ(readWhole(other), "old");
  write(other, "new").as<Ok>();
  EXPECT_EQ(readWhole(other), "new");
}

TEST_F(FilesTest, SymlinksAreFollowed) {
  write("target", "t").as<Ok>();
  ASSERT_EQ(::symlink("target", home("link").c_str()), 0);
  EXPECT_EQ(read("link").bulk, "t");
  write("link", "u").as<Ok>();
  EXPECT_EQ(readWhole(home("target")), "u");
}

TEST_F(FilesTest, RelativePathsJoinTheHomeOrRoot) {
  write("here", "h").as<Ok>();
  EXPECT_EQ(readWhole(home("here")), "h");
  std::filesystem::remove_all(world.home("agent"));
  EXPECT_EQ(read("etc/passwd").bulk, readWhole("/etc/passwd"));
}

TEST_F(FilesTest, AnEffectNeverHappensForAMessageWhoseDigestIsWrong) {
  WriteFile request;
  request.path = "never";
  request.dataSize = 3;
  auto bytes = std::get<std::string>(
      channel::encodeMessage({freshId(), request}, std::as_bytes(std::span("abc", 3))));
  std::size_t payload = bytes.find("abc");
  ASSERT_NE(payload, std::string::npos);
  bytes[payload] = 'x';
  Fd socket = connect();
  ASSERT_TRUE(send(socket, bytes));
  auto got = receive(socket);
  EXPECT_FALSE(got.message);
  EXPECT_EQ(got.error, channel::DecodeError::CLOSED);
  EXPECT_FALSE(std::filesystem::exists(home("never")));
  auto entry = diagEntry("decode-failed");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->detail, "bulk-mismatch");
}

TEST_F(FilesTest, AnUploadThatCannotBeKeptIsAnErrorAndNoEffect) {
  for (const char* directory : {"/var/tmp", "/tmp"}) {
    if (world.root.starts_with(directory)) continue;  // where the socket is
    coverWithTmpfs(directory, 1 << 20);
  }
  start();
  EXPECT_EQ(write("large", std::string(4 << 20, 'l')).as<Error>().errnoName, "ENOSPC");
  EXPECT_FALSE(std::filesystem::exists(home("large")));
  channel::Exec exec = shell("cat >copy");
  exec.dataSize = 4 << 20;
  EXPECT_EQ(ask(exec, std::string(4 << 20, 'l')).as<Error>().errnoName, "ENOSPC");
  EXPECT_FALSE(std::filesystem::exists(home("copy")));
}

}  // namespace
}  // namespace cordon::guest
