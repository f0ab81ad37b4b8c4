// Front ends that lie: each message, each lie, each verdict.
#include "services/vsock/vhost-user/front-end.h"

#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "services/vsock/testing/front-end-peer.h"

namespace cordon::vsock::testing {
namespace {

constexpr std::uint64_t CID = 10000;

std::size_t openDescriptors() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

class FrontEndTest : public ::testing::Test {
 protected:
  using Outcome = FrontEnd::Outcome;

  FrontEndTest() {
    ::fcntl(peer.backEnd.get(), F_SETFL, O_NONBLOCK);
    frontEnd.emplace(peer.backEnd.get(), CID, device, poller, log);
  }
  Outcome handle() { return frontEnd->onReadable(); }
  void expectFine() {
    ASSERT_EQ(handle(), Outcome::GOES_ON)
        << name(frontEnd->fault()) << ' ' << name(frontEnd->channelFault()) << ' '
        << name(frontEnd->mappingFault());
  }
  void expectRefused(FrontEndFault why) {
    EXPECT_EQ(handle(), Outcome::FAULT);
    EXPECT_EQ(frontEnd->fault(), why) << name(frontEnd->fault());
  }

  FrontEndPeer peer{CID};
  Poller poller;
  BoundedLog log{log::Log("cordon-vsock-test", -1, log::Level::ERROR, false)};
  Device device{CID};
  std::optional<FrontEnd> frontEnd;
};

TEST_F(FrontEndTest, OffersWhatADriverNeedsAndNothingElse) {
  peer.send(Request::GET_FEATURES);
  expectFine();
  EXPECT_EQ(peer.replyNumber(), (1ULL << 32) | (1ULL << 30));
  peer.send(Request::GET_PROTOCOL_FEATURES);
  expectFine();
  EXPECT_EQ(peer.replyNumber(), PROTOCOL_F_MQ | PROTOCOL_F_REPLY_ACK | PROTOCOL_F_CONFIG);
  peer.send(Request::GET_QUEUE_NUM);
  expectFine();
  EXPECT_EQ(peer.replyNumber(), 2U);
}

TEST_F(FrontEndTest, TellsTheGuestsCid) {
  struct {
    ConfigHeader header{0, 8, 0};
    std::uint64_t cid = 0;
  } __attribute__((packed)) wanted;
  peer.send(Request::GET_CONFIG, wanted);
  expectFine();
  MessageHeader header{};
  const std::vector<std::uint8_t> payload = peer.reply(header);
  EXPECT_EQ(header.request, static_cast<std::uint32_t>(Request::GET_CONFIG));
  EXPECT_EQ(header.flags, PROTOCOL_VERSION | FLAG_REPLY);
  ASSERT_EQ(payload.size(), sizeof(wanted));
  std::memcpy(&wanted, payload.data(), sizeof(wanted));
  EXPECT_EQ(wanted.cid, CID);
}

TEST_F(FrontEndTest, AnswersAConfigurationThatItDoesNotHaveWithNone) {
  for (const ConfigHeader header :
       {ConfigHeader{8, 1, 0}, ConfigHeader{1, 8, 0}, ConfigHeader{UINT32_MAX, 4, 0}}) {
    std::vector<std::uint8_t> bytes(sizeof(header) + header.size);
    std::memcpy(bytes.data(), &header, sizeof(header));
    peer.send(Request::GET_CONFIG, bytes);
    expectFine();
    MessageHeader reply{};
    EXPECT_TRUE(peer.reply(reply).empty());
  }
}

TEST_F(FrontEndTest, StartsStopsAndRestartsItsRings) {
  peer.start();
  expectFine();
  EXPECT_TRUE(device.ready());
  for (std::uint32_t queue = 0; queue < QUEUE_COUNT; ++queue) {
    peer.send(Request::GET_VRING_BASE, VringState{queue, 0});
    expectFine();
    EXPECT_FALSE(device.queueRunning(queue));
    MessageHeader header{};
    EXPECT_EQ(peer.reply(header).size(), sizeof(VringState));
  }
  peer.startRings();
  expectFine();
  EXPECT_TRUE(device.ready());
  EXPECT_EQ(device.counters.ringStarts, 4U);
}

TEST_F(FrontEndTest, ARingRunsOnlyWhileEnabled) {
  peer.negotiate();
  peer.sendMemory();
  peer.setUpRing(0);
  peer.setUpRing(1);
  expectFine();
  EXPECT_FALSE(device.queueRunning(0));
  peer.send(Request::SET_VRING_ENABLE, VringState{0, 1});
  expectFine();
  EXPECT_TRUE(device.queueRunning(0));
  EXPECT_FALSE(device.ready());
  peer.send(Request::SET_VRING_ENABLE, VringState{0, 0});
  expectFine();
  EXPECT_FALSE(device.queueRunning(0));
}

TEST_F(FrontEndTest, ALegacyDriverGetsNoRing) {
  peer.send(Request::SET_FEATURES, std::uint64_t{VHOST_USER_F_PROTOCOL_FEATURES});
  peer.sendMemory();
  peer.startRings();
  expectFine();
  EXPECT_FALSE(device.queueRunning(0));
}

TEST_F(FrontEndTest, RingAddressesOfTheGuestsChoiceStopTheRingAndNotTheProcess) {
  peer.negotiate();
  peer.sendMemory();
  peer.setUpRing(0);
  peer.send(Request::SET_VRING_ADDR, VringAddress{0, 0, UINT64_MAX, 0, 1, 0});
  peer.send(Request::SET_VRING_ENABLE, VringState{0, 1});
  expectFine();
  EXPECT_FALSE(device.queueRunning(0));
  EXPECT_EQ(device.counters.queueFaults, 1U);
}

TEST_F(FrontEndTest, RunningRingsFollowTheMemoryOrStop) {
  peer.start();
  expectFine();
  peer.sendMemory();
  expectFine();
  EXPECT_TRUE(device.ready());
  const Fd other = makeMemory(1 << 20);
  struct {
    MemoryTableHeader header;
    MemoryTableRegion region;
  } table{{1, 0}, {0, 1 << 20, 0, 0}};
  peer.send(Request::SET_MEM_TABLE, table, {other.get()});
  expectFine();
  EXPECT_FALSE(device.ready());
  const auto fault = device.takeFault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->reason, QueueFault::RING_ADDRESS);
}

TEST_F(FrontEndTest, AcknowledgesWhenAskedToAndRefusesUnknownRequests) {
  peer.negotiate();
  expectFine();
  peer.send(Request::SET_OWNER, {}, {}, PROTOCOL_VERSION | FLAG_NEED_REPLY);
  expectFine();
  EXPECT_EQ(peer.replyNumber(), 0U);
  for (const std::uint32_t unknown :
       {0U, 4U, 6U, 7U, 19U, 20U, 21U, 23U, 25U, 26U, 27U, 31U, 37U, 40U, UINT32_MAX}) {
    peer.send(static_cast<Request>(unknown), {}, {}, PROTOCOL_VERSION | FLAG_NEED_REPLY);
    expectFine();
    EXPECT_EQ(peer.replyNumber(), 1U) << unknown;
  }
}

TEST_F(FrontEndTest, ClosesTheDescriptorsOfUnknownRequests) {
  const std::size_t before = openDescriptors();
  for (int i = 0; i < 40; ++i) peer.send(static_cast<Request>(99), std::uint64_t{0}, {0, 1, 2});
  expectFine();
  EXPECT_EQ(openDescriptors(), before);
}

TEST_F(FrontEndTest, GoesWithItsFrontEnd) {
  peer.socket.reset();
  EXPECT_EQ(handle(), Outcome::GONE);
}

struct Lie {
  const char* name;
  std::function<void(FrontEndPeer&)> tell;
  FrontEndFault expected;
  ChannelFault channel = ChannelFault::NONE;
  MappingFault mapping = MappingFault::NONE;
};

template <typename Table>
void sendTable(FrontEndPeer& peer, std::vector<MemoryTableRegion> regions, const Table& fds,
               std::uint32_t claimed) {
  std::vector<std::uint8_t> bytes(sizeof(MemoryTableHeader) +
                                  regions.size() * sizeof(MemoryTableRegion));
  const MemoryTableHeader header{claimed, 0};
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!regions.empty()) {
    std::memcpy(bytes.data() + sizeof(header), regions.data(),
                regions.size() * sizeof(MemoryTableRegion));
  }
  peer.send(Request::SET_MEM_TABLE, bytes, fds);
}

void sendOneRegion(FrontEndPeer& peer, const MemoryTableRegion& region, int fd) {
  sendTable(peer, {region}, std::vector<int>{fd}, 1);
}

void sendHeader(FrontEndPeer& peer, std::uint32_t request, std::uint32_t flags,
                std::uint32_t size) {
  const MessageHeader header{request, flags, size};
  peer.sendRaw({reinterpret_cast<const std::uint8_t*>(&header), sizeof(header)});
}

const std::vector<Lie>& lies() {
  static const std::vector<Lie> ALL = {
      {"PayloadTooLarge", [](auto& p) { sendHeader(p, 1, 1, MAX_MESSAGE_SIZE + 1); },
       FrontEndFault::CHANNEL, ChannelFault::SIZE},
      {"PayloadOfFourGigabytes", [](auto& p) { sendHeader(p, 1, 1, UINT32_MAX); },
       FrontEndFault::CHANNEL, ChannelFault::SIZE},
      {"VersionZero", [](auto& p) { sendHeader(p, 1, 0, 0); }, FrontEndFault::CHANNEL,
       ChannelFault::VERSION},
      {"VersionTwo", [](auto& p) { sendHeader(p, 1, 2, 0); }, FrontEndFault::CHANNEL,
       ChannelFault::VERSION},
      {"AReply", [](auto& p) { sendHeader(p, 1, 1 | FLAG_REPLY, 0); }, FrontEndFault::CHANNEL,
       ChannelFault::VERSION},
      {"UnknownFlags", [](auto& p) { sendHeader(p, 1, 1 | 16, 0); }, FrontEndFault::CHANNEL,
       ChannelFault::VERSION},
      {"EndInHeader",
       [](auto& p) {
         p.sendRaw(std::vector<std::uint8_t>(5, 1));
         p.socket.reset();
       },
       FrontEndFault::CHANNEL, ChannelFault::TRUNCATED},
      {"EndInPayload",
       [](auto& p) {
         sendHeader(p, 2, 1, 8);
         p.socket.reset();
       },
       FrontEndFault::CHANNEL, ChannelFault::TRUNCATED},
      {"NineDescriptors",
       [](auto& p) {
         p.send(Request::SET_VRING_CALL, std::uint64_t{0}, {0, 0, 0, 0, 0, 0, 0, 0, 0});
       },
       FrontEndFault::CHANNEL, ChannelFault::TOO_MANY_FDS},
      {"MoreDescriptorsThanAnyBuffer",
       [](auto& p) {
         const std::vector<int> many(200, 0);
         p.sendRaw(std::vector<std::uint8_t>(12, 1), many);
       },
       FrontEndFault::CHANNEL, ChannelFault::FDS_LOST},
      {"FeaturesNotOffered",
       [](auto& p) { p.send(Request::SET_FEATURES, (1ULL << 32) | (1ULL << 28)); },
       FrontEndFault::FEATURES},
      {"ProtocolFeaturesNotOffered",
       [](auto& p) { p.send(Request::SET_PROTOCOL_FEATURES, 1ULL << 5); }, FrontEndFault::FEATURES},
      {"GetFeaturesWithPayload", [](auto& p) { p.send(Request::GET_FEATURES, std::uint64_t{0}); },
       FrontEndFault::PAYLOAD_SIZE},
      {"SetFeaturesTooShort", [](auto& p) { p.send(Request::SET_FEATURES, std::uint32_t{0}); },
       FrontEndFault::PAYLOAD_SIZE},
      {"SetOwnerWithDescriptor",
       [](auto& p) { p.send(Request::SET_OWNER, std::span<const std::uint8_t>{}, std::array{0}); },
       FrontEndFault::DESCRIPTOR_COUNT},
      {"RingTwo",
       [](auto& p) {
         p.send(Request::SET_VRING_NUM, VringState{2, 128});
       },
       FrontEndFault::RING_INDEX},
      {"RingFar",
       [](auto& p) {
         p.send(Request::GET_VRING_BASE, VringState{UINT32_MAX, 0});
       },
       FrontEndFault::RING_INDEX},
      {"RingTwoAddress",
       [](auto& p) {
         p.send(Request::SET_VRING_ADDR, VringAddress{2, 0, 0, 0, 0, 0});
       },
       FrontEndFault::RING_INDEX},
      {"RingTwoEnable",
       [](auto& p) {
         p.send(Request::SET_VRING_ENABLE, VringState{2, 1});
       },
       FrontEndFault::RING_INDEX},
      {"EnableTwo",
       [](auto& p) {
         p.send(Request::SET_VRING_ENABLE, VringState{0, 2});
       },
       FrontEndFault::RING_VALUE},
      {"BaseTooLarge",
       [](auto& p) {
         p.send(Request::SET_VRING_BASE, VringState{0, 65536});
       },
       FrontEndFault::RING_VALUE},
      {"LogOfWrites",
       [](auto& p) {
         p.send(Request::SET_VRING_ADDR, VringAddress{0, 1, 0, 0, 0, 0});
       },
       FrontEndFault::RING_VALUE},
      {"KickWithoutDescriptor", [](auto& p) { p.send(Request::SET_VRING_KICK, std::uint64_t{0}); },
       FrontEndFault::DESCRIPTOR_COUNT},
      {"KickWithTwo",
       [](auto& p) {
         p.send(Request::SET_VRING_KICK, std::uint64_t{0}, {p.kicks[0].get(), p.kicks[1].get()});
       },
       FrontEndFault::DESCRIPTOR_COUNT},
      {"KickOfRingTwo",
       [](auto& p) { p.send(Request::SET_VRING_KICK, std::uint64_t{2}, {p.kicks[0].get()}); },
       FrontEndFault::RING_INDEX},
      {"KickWithUnknownBits",
       [](auto& p) { p.send(Request::SET_VRING_KICK, std::uint64_t{512}, {p.kicks[0].get()}); },
       FrontEndFault::RING_VALUE},
      {"NoDescriptorButOneComes",
       [](auto& p) {
         p.send(Request::SET_VRING_CALL, std::uint64_t{VRING_NO_FD}, {p.calls[0].get()});
       },
       FrontEndFault::DESCRIPTOR_COUNT},
      {"Polling", [](auto& p) { p.send(Request::SET_VRING_KICK, std::uint64_t{VRING_NO_FD}); },
       FrontEndFault::POLLING},
      {"KickThatCannotBeWaitedFor",
       [](auto& p) { p.send(Request::SET_VRING_KICK, std::uint64_t{0}, {p.memory.get()}); },
       FrontEndFault::KICK_DESCRIPTOR},
      {"SizeOfARunningRing",
       [](auto& p) {
         p.start();
         p.send(Request::SET_VRING_NUM, VringState{0, 64});
       },
       FrontEndFault::RING_STARTED},
      {"AddressOfARunningRing",
       [](auto& p) {
         p.start();
         p.send(Request::SET_VRING_ADDR, VringAddress{1, 0, 0, 0, 0, 0});
       },
       FrontEndFault::RING_STARTED},
      {"BaseOfARunningRing",
       [](auto& p) {
         p.start();
         p.send(Request::SET_VRING_BASE, VringState{1, 0});
       },
       FrontEndFault::RING_STARTED},
      {"ConfigTooShort", [](auto& p) { p.send(Request::GET_CONFIG, std::uint64_t{0}); },
       FrontEndFault::PAYLOAD_SIZE},
      {"ConfigThatLiesAboutItsSize",
       [](auto& p) {
         p.send(Request::GET_CONFIG, ConfigHeader{0, 8, 0});
       },
       FrontEndFault::PAYLOAD_SIZE},
      {"ConfigOfFourGigabytes",
       [](auto& p) {
         p.send(Request::GET_CONFIG, ConfigHeader{0, UINT32_MAX - 11, 0});
       },
       FrontEndFault::PAYLOAD_SIZE},
      {"TableWithoutHeader", [](auto& p) { p.send(Request::SET_MEM_TABLE, std::uint32_t{0}); },
       FrontEndFault::PAYLOAD_SIZE},
      {"TableOfNine",
       [](auto& p) {
         sendTable(p, std::vector<MemoryTableRegion>(9), std::vector<int>(8, p.memory.get()), 9);
       },
       FrontEndFault::PAYLOAD_SIZE},
      {"TableOfFourBillion",
       [](auto& p) {
         sendTable(p, std::vector<MemoryTableRegion>(1), std::vector<int>{p.memory.get()},
                   UINT32_MAX);
       },
       FrontEndFault::PAYLOAD_SIZE},
      {"TableWithADescriptorTooFew",
       [](auto& p) {
         sendTable(p, std::vector<MemoryTableRegion>(2), std::vector<int>{p.memory.get()}, 2);
       },
       FrontEndFault::DESCRIPTOR_COUNT},
      {"EmptyTable", [](auto& p) { sendTable(p, {}, std::vector<int>{}, 0); },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::COUNT},
      {"MemoryThatCanShrink",
       [](auto& p) {
         sendOneRegion(p, {0, 4096, 0, 0}, makeMemory(4096, F_SEAL_GROW).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::CAN_SHRINK},
      {"MemoryWithoutSeals",
       [](auto& p) {
         sendOneRegion(p, {0, 4096, 0, 0}, makeMemory(4096, 0).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::CAN_SHRINK},
      {"MemoryThatIsAFile",
       [](auto& p) {
         sendOneRegion(p, {0, 4096, 0, 0},
                       Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::CAN_SHRINK},
      {"MemoryBeyondItsFile",
       [](auto& p) {
         sendOneRegion(p, {0, 8192, 0, 0}, makeMemory(4096).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::SIZE},
      {"MemoryAtAnOffsetBeyondItsFile",
       [](auto& p) {
         sendOneRegion(p, {0, 4096, 0, 4096}, makeMemory(4096).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::SIZE},
      {"MemoryWhoseOffsetWraps",
       [](auto& p) {
         sendOneRegion(p, {0, 8192, 0, UINT64_MAX - 4095}, makeMemory(4096).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::SIZE},
      {"MemoryOfNoSize",
       [](auto& p) {
         sendOneRegion(p, {0, 0, 0, 0}, makeMemory(4096).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::SIZE},
      {"MemoryOfHalfAPage",
       [](auto& p) {
         sendOneRegion(p, {0, 2048, 0, 0}, makeMemory(4096).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::SIZE},
      {"MemoryThatWraps",
       [](auto& p) {
         sendOneRegion(p, {UINT64_MAX - 4095 + 1, 8192, 0, 0}, makeMemory(8192).get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::OVERLAP},
      {"MemoryThatOverlaps",
       [](auto& p) {
         sendTable(p, {{0, 8192, 0, 0}, {4096, 4096, 1 << 20, 0}},
                   std::vector<int>{makeMemory(8192).get(), p.memory.get()}, 2);
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::OVERLAP},
      {"DescriptorsThatAreNotMemory",
       [](auto& p) {
         sendOneRegion(p, {0, 4096, 0, 0}, p.kicks[0].get());
       },
       FrontEndFault::MEMORY, ChannelFault::NONE, MappingFault::CAN_SHRINK},
  };
  return ALL;
}

class FrontEndLieTest : public FrontEndTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(FrontEndLieTest, EndsItWithTheRightReasonAndNoDescriptorLeft) {
  const std::size_t before = openDescriptors();
  bool hadSocket = true;
  GetParam().tell(peer);
  hadSocket = static_cast<bool>(peer.socket);
  expectRefused(GetParam().expected);
  EXPECT_EQ(frontEnd->channelFault(), GetParam().channel) << name(frontEnd->channelFault());
  EXPECT_EQ(frontEnd->mappingFault(), GetParam().mapping) << name(frontEnd->mappingFault());
  frontEnd.reset();
  EXPECT_EQ(openDescriptors(), before - (hadSocket ? 0 : 1));
}

INSTANTIATE_TEST_SUITE_P(Each, FrontEndLieTest, ::testing::ValuesIn(lies()),
                         [](const auto& each) { return std::string(each.param.name); });

class VhostUserChannelTest : public FrontEndTest {};

TEST_F(VhostUserChannelTest, TakesAMessageByteByByte) {
  const MessageHeader header{static_cast<std::uint32_t>(Request::SET_FEATURES), PROTOCOL_VERSION,
                             8};
  std::vector<std::uint8_t> bytes(sizeof(header) + 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes[sizeof(header) + 4] = 1;  // VERSION_1
  for (const std::uint8_t each : bytes) {
    peer.sendRaw({&each, 1});
    expectFine();
  }
  peer.send(Request::GET_QUEUE_NUM);
  expectFine();
  EXPECT_EQ(peer.replyNumber(), 2U);
}

TEST_F(VhostUserChannelTest, ClosesEveryDescriptorOfABadMessage) {
  const std::size_t before = openDescriptors();
  peer.send(Request::SET_VRING_KICK, std::uint64_t{0}, {0, 0, 0, 0, 0, 0, 0, 0});
  expectRefused(FrontEndFault::DESCRIPTOR_COUNT);
  EXPECT_EQ(openDescriptors(), before);
}

TEST_F(VhostUserChannelTest, LeavesAFrontEndThatDoesNotReadItsReplies) {
  Outcome outcome = Outcome::GOES_ON;
  for (int i = 0; i < 100'000 && outcome == Outcome::GOES_ON; ++i) {
    peer.send(Request::GET_FEATURES);
    outcome = handle();
  }
  EXPECT_EQ(outcome, Outcome::FAULT);
  EXPECT_EQ(frontEnd->fault(), FrontEndFault::REPLY);
}

TEST_F(VhostUserChannelTest, StopsListeningToAKickThatEnded) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  peer.send(Request::SET_VRING_KICK, std::uint64_t{0}, {ends[0]});
  expectFine();
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_EQ(poller.wait(std::chrono::milliseconds(0)).size(), 1U);
  frontEnd->onKick(0);
  EXPECT_EQ(poller.wait(std::chrono::milliseconds(0)).size(), 0U);
}

}  // namespace
}  // namespace cordon::vsock::testing
