// Sinks of protocols/records.capnp that keep what is written to them, for tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <kj/debug.h>

#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/records.capnp.h"

namespace cordon::tests {

inline std::string bytesOf(capnp::Data::Reader bytes) {
  return {bytes.asChars().begin(), bytes.size()};
}
template <std::size_t SIZE>
std::array<std::uint8_t, SIZE> digestOf(capnp::Data::Reader bytes) {
  std::array<std::uint8_t, SIZE> digest{};
  if (bytes.size() == SIZE) std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

// What both sinks keep of their calls.
struct ListCalls {
  std::vector<std::size_t> pieces;
  unsigned ends = 0;
  std::size_t largestMessage = 0;  // bytes of parameters
  std::size_t failsAt = 0;         // the call that fails, from 1

  kj::Promise<void> take(std::size_t size, std::size_t words) {
    pieces.push_back(size);
    largestMessage = std::max(largestMessage, words * sizeof(capnp::word));
    KJ_REQUIRE(pieces.size() != failsAt, "as the test wants");
    return kj::READY_NOW;
  }
};

struct CaseList : ListCalls {
  std::vector<records::JunitCase> cases;

  class Sink final : public protocols::CaseSink::Server {
   public:
    explicit Sink(CaseList& target) : list(target) {}
    kj::Promise<void> write(WriteContext context) override {
      const auto params = context.getParams();
      for (const auto from : params.getCases()) {
        records::JunitCase to{.className = bytesOf(from.getClassName()),
                              .name = bytesOf(from.getName()),
                              .outcome = static_cast<records::CaseOutcome>(from.getOutcome()),
                              .attempts = from.getAttempts(),
                              .text = bytesOf(from.getText()),
                              .truncated = from.getTruncated(),
                              .textBytes = from.getTextBytes(),
                              .textSha256 = digestOf<32>(from.getTextSha256())};
        for (const auto suite : from.getSuite()) to.suite.push_back(bytesOf(suite));
        list.cases.push_back(std::move(to));
      }
      return list.take(params.getCases().size(), params.totalSize().wordCount);
    }
    kj::Promise<void> end(EndContext) override {
      ++list.ends;
      return kj::READY_NOW;
    }

   private:
    CaseList& list;
  };
  protocols::CaseSink::Client sink() { return kj::heap<Sink>(*this); }
};

struct VerdictList : ListCalls {
  std::vector<records::VerdictRecord> records;

  class Sink final : public protocols::VerdictSink::Server {
   public:
    explicit Sink(VerdictList& target) : list(target) {}
    kj::Promise<void> write(WriteContext context) override {
      const auto params = context.getParams();
      for (const auto from : params.getRecords()) {
        records::VerdictRecord to{
            .seq = from.getSeq(),
            .check = bytesOf(from.getCheck()),
            .goal = {},
            .outcome = static_cast<records::VerdictOutcome>(from.getOutcome()),
            .observedMs = from.getObservedMs(),
            .proof = {},
            .detail = {}};
        if (from.getHasGoal()) to.goal = bytesOf(from.getGoal());
        if (from.getHasDetail()) to.detail = bytesOf(from.getDetail());
        if (from.getProofKind().size() != 0)
          to.proof = records::VerdictProof{.kind = bytesOf(from.getProofKind()),
                                           .sha256 = digestOf<32>(from.getProofSha256())};
        list.records.push_back(std::move(to));
      }
      return list.take(params.getRecords().size(), params.totalSize().wordCount);
    }
    kj::Promise<void> end(EndContext) override {
      ++list.ends;
      return kj::READY_NOW;
    }

   private:
    VerdictList& list;
  };
  protocols::VerdictSink::Client sink() { return kj::heap<Sink>(*this); }
};

}  // namespace cordon::tests
