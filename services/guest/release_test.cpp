// The binary as it goes into images: static, small, and small when idle.
#include <cstring>
#include <elf.h>
#include <sstream>
#include <sys/stat.h>

#include "services/guest/agent-fixture.h"

namespace cordon::guest {
namespace {

constexpr std::size_t MAX_SIZE = 4u << 20;
constexpr long MAX_IDLE_KIB = 4096;

class ReleaseTest : public AgentTest {
 protected:
  long status(const std::string& name) const {
    std::istringstream lines(readWhole("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
    }
    ADD_FAILURE() << "no " << name;
    return -1;
  }
};

TEST_F(ReleaseTest, NeedsNoInterpreterAndNoLibrary) {
  std::string file = readWhole(CORDON_GUEST_BINARY);
  Elf64_Ehdr header{};
  ASSERT_GE(file.size(), sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  ASSERT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
  for (std::size_t at = 0; at < header.e_phnum; ++at) {
    Elf64_Phdr segment{};
    std::memcpy(&segment, file.data() + header.e_phoff + at * sizeof segment, sizeof segment);
    EXPECT_NE(segment.p_type, static_cast<Elf64_Word>(PT_INTERP));
    if (segment.p_type != PT_DYNAMIC) continue;
    for (std::size_t entry = 0; entry < segment.p_filesz; entry += sizeof(Elf64_Dyn)) {
      Elf64_Dyn dynamic{};
      std::memcpy(&dynamic, file.data() + segment.p_offset + entry, sizeof dynamic);
      EXPECT_NE(dynamic.d_tag, DT_NEEDED);
    }
  }
}

TEST_F(ReleaseTest, IsAtMost4MebibytesStripped) {
  std::string stripped = world.root + "/stripped";
  std::string command = "strip -o " + stripped + " " CORDON_GUEST_BINARY;
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::size_t size = readWhole(stripped).size();
  RecordProperty("stripped-bytes", std::to_string(size));
  EXPECT_GT(size, 0U);
  EXPECT_LE(size, MAX_SIZE);
}

TEST_F(ReleaseTest, IdlesWithin4Mebibytes) {
  start();
  RecordProperty("VmRSS-KiB", std::to_string(status("VmRSS")));
  EXPECT_LE(status("VmRSS"), MAX_IDLE_KIB);
  EXPECT_LE(status("VmHWM"), MAX_IDLE_KIB);
}

TEST_F(ReleaseTest, AnUploadOfManyMebibytesDoesNotGrowIt) {
  start();
  channel::Exec exec = shell("wc -c");
  exec.dataSize = 40 << 20;
  EXPECT_EQ(stdoutOf(ask(exec, std::string(40u << 20, 'u'))), "41943040\n");
  RecordProperty("VmHWM-KiB", std::to_string(status("VmHWM")));
  // Twice the idle bound: the request's memory limit of 1 MiB and its buffers, not the 40 MiB.
  EXPECT_LE(status("VmHWM"), 2 * MAX_IDLE_KIB);
}

TEST_F(ReleaseTest, MemoryOfAcknowledgedRepliesGoesBack) {
  start();
  auto got = run("head -c 16777216 /dev/zero");
  EXPECT_EQ(got.bulk.size(), 16777216U);
  EXPECT_GT(status("VmRSS"), 16384);
  ask(channel::Ack{got.message->id}).as<channel::Ok>();
  EXPECT_LE(status("VmRSS"), 2 * MAX_IDLE_KIB);
}

}  // namespace
}  // namespace cordon::guest
