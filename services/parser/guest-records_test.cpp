// Records read out of a guest: in virtual time, from a guest that says what the test tells it.
#include "services/parser/guest-records.h"

#include <string>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "services/parser/testing/list-sinks.h"
#include "tests/support/virtual-client.h"

namespace cordon::parser {
namespace {

using tests::CaseList;
using tests::Heard;
using tests::Saying;
using tests::VerdictList;
using tests::VirtualClient;

constexpr std::string_view GREEN =
    R"(<testsuite name="s"><testcase classname="c" name="n"/></testsuite>)";

std::string verdictLine(int seq) {
  return R"({"v":1,"run":"00112233445566778899aabbccddeeff","seq":)" + std::to_string(seq) +
         R"(,"check":"c","outcome":"pass","observed_ms":1,"tier":"T3"})" + '\n';
}

struct Guest : VirtualClient {
  explicit Guest(tests::Script script) : VirtualClient(tests::honestBut(std::move(script))) {}

  Outcome<records::JunitReport> junit() {
    return world.run(readJunit(client, REQUEST, {.path = "/f"}, cases.sink()));
  }
  Outcome<records::VerdictsReport> verdictRecords() {
    return world.run(readVerdicts(client, REQUEST, {.path = "/f"}, listed.sink()));
  }
  CaseList cases;
  VerdictList listed;
};

tests::Script saying(std::string content, bool truncated = false) {
  return [content = std::move(content), truncated](const Heard& heard) {
    return Saying::bytes(tests::file(heard.request.id, content, truncated));
  };
}
tests::Script failing(std::string errnoName) {
  return [errnoName = std::move(errnoName)](const Heard& heard) {
    return Saying::bytes(tests::error(heard.request.id, errnoName));
  };
}

TEST(GuestRecords, ReadsJunit) {
  Guest guest(saying(std::string(GREEN)));
  const auto outcome = guest.junit();
  ASSERT_TRUE(std::holds_alternative<records::JunitReport>(outcome)) << tests::verdictOf(outcome);
  EXPECT_TRUE(std::get<records::JunitReport>(outcome).green);
  ASSERT_EQ(guest.cases.cases.size(), 1U);
  EXPECT_EQ(guest.cases.cases[0].name, "n");
  EXPECT_EQ(guest.cases.ends, 1U);
  const auto& asked = std::get<channel::ReadFile>(guest.guest.heard()[0].request.body);
  EXPECT_EQ(asked.path, "/f");
  EXPECT_EQ(asked.maxBytes, (std::int64_t{512} << 20) + 1);
}

TEST(GuestRecords, ReadsVerdictsThatComeInManyPieces) {
  std::string content;
  for (int seq = 1; seq <= 5000; ++seq) content += verdictLine(seq);
  Guest guest(saying(content));
  const auto outcome = guest.verdictRecords();
  ASSERT_TRUE(std::holds_alternative<records::VerdictsReport>(outcome));
  EXPECT_TRUE(std::get<records::VerdictsReport>(outcome).green);
  ASSERT_EQ(guest.listed.records.size(), 5000U);
  EXPECT_EQ(guest.listed.records.back().seq, 5000U);
}

TEST(GuestRecords, AFileThatIsNotThereIsMissing) {
  for (const char* errnoName : {"ENOENT", "ENOTDIR"}) {
    Guest guest(failing(errnoName));
    const auto junit = guest.junit();
    ASSERT_TRUE(std::holds_alternative<records::JunitReport>(junit)) << errnoName;
    EXPECT_EQ(std::get<records::JunitReport>(junit).status, records::Status::MISSING);
    EXPECT_FALSE(std::get<records::JunitReport>(junit).green);
    EXPECT_EQ(guest.cases.ends, 0U);
    Guest other(failing(errnoName));
    const auto verdicts = other.verdictRecords();
    ASSERT_TRUE(std::holds_alternative<records::VerdictsReport>(verdicts));
    EXPECT_EQ(std::get<records::VerdictsReport>(verdicts).status, records::Status::MISSING);
  }
}

TEST(GuestRecords, AnyOtherErrorOfTheGuestIsAFailure) {
  for (const char* errnoName : {"EACCES", "EISDIR", "EIO", "ELOOP"}) {
    Guest guest(failing(errnoName));
    EXPECT_EQ(tests::verdictOf(guest.junit()), "guest " + std::string(errnoName) + " x1");
  }
}

// As much of the file as was read is in order; that it goes on is what is wrong with it.
TEST(GuestRecords, AFileThatIsTooLongIsRefused) {
  Guest junit(saying(std::string(GREEN), true));
  const auto ofJunit = std::get<records::JunitReport>(junit.junit());
  EXPECT_EQ(ofJunit.status, records::Status::REFUSED);
  EXPECT_EQ(ofJunit.reason, records::Reason::TOO_MANY_BYTES);
  EXPECT_EQ(ofJunit.totals.cases, 0U);
  EXPECT_FALSE(ofJunit.green);
  EXPECT_TRUE(junit.cases.cases.empty());
  Guest verdicts(saying(verdictLine(1), true));
  const auto ofVerdicts = std::get<records::VerdictsReport>(verdicts.verdictRecords());
  EXPECT_EQ(ofVerdicts.status, records::Status::REFUSED);
  EXPECT_EQ(ofVerdicts.reason, records::Reason::TOO_MANY_BYTES);
  EXPECT_EQ(ofVerdicts.records, 0U);
}

TEST(GuestRecords, TheFirstViolationOfAFileThatIsTooLongDecides) {
  Guest guest(saying("<!DOCTYPE a><a/>", true));
  EXPECT_EQ(std::get<records::JunitReport>(guest.junit()).reason, records::Reason::DOCTYPE);
}

TEST(GuestRecords, NothingIsToldOfAReplyThatIsTamper) {
  Guest guest([](const Heard& heard) {
    // A reply whose last byte was changed on the way: the digest of its end shows it.
    std::string reply = tests::file(heard.request.id, GREEN);
    reply[reply.find("name=\"n\"") + 6] = 'x';
    return Saying::bytes(reply);
  });
  EXPECT_EQ(tests::verdictOf(guest.junit()), "tamper bulk-mismatch x1");
  EXPECT_TRUE(guest.cases.pieces.empty());
  EXPECT_EQ(guest.cases.ends, 0U);
}

TEST(GuestRecords, ALostReplyIsFetchedAgainAndReadOnce) {
  unsigned replies = 0;
  Guest guest([&](const Heard& heard) {
    const std::string reply = tests::file(heard.request.id, GREEN);
    return Saying::bytes(++replies == 1 ? reply.substr(0, reply.size() - 20) : reply);
  });
  const auto outcome = guest.junit();
  ASSERT_TRUE(std::holds_alternative<records::JunitReport>(outcome)) << tests::verdictOf(outcome);
  EXPECT_EQ(replies, 2U);
  EXPECT_EQ(std::get<records::JunitReport>(outcome).totals.cases, 1U);
  EXPECT_EQ(guest.cases.cases.size(), 1U);
}

TEST(GuestRecords, ASinkThatFailsIsNotTheGuestsFault) {
  Guest guest(saying(std::string(GREEN)));
  guest.cases.failsAt = 1;
  EXPECT_EQ(tests::verdictOf(guest.junit()), "stream failed x1");
}

}  // namespace
}  // namespace cordon::parser
