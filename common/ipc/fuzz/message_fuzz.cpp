// Framing and inspection of what a peer sends, as GuardedStream does them, without a socket.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <kj/debug.h>

#include "common/ipc/framing.h"
#include "common/ipc/inspect.h"

namespace {

using namespace cordon::ipc;

void require(bool holds) {
  if (!holds) std::abort();
}

// What every message that leaves inspection as a replacement must be: an exception with a code and
// no other text.
void checkReplacement(capnp::MallocMessageBuilder& builder) {
  const auto message = builder.getRoot<capnp::rpc::Message>().asReader();
  const auto reason = message.isAbort()    ? message.getAbort().getReason()
                      : message.isReturn() ? message.getReturn().getException().getReason()
                                           : message.getResolve().getException().getReason();
  const std::string_view text(reason.begin(), reason.size());
  const auto code = parseCode(text);
  require(code.has_value() && text == "cordon:" + std::string(name(*code)));
}

// One message from the front of `input`; false where the connection would end.
bool takeMessage(std::span<const std::byte>& input, AnswerTable& answers,
                 const PeerLimits& limits) {
  if (input.size() < WORD_BYTES) return false;
  const auto started = readStart(input.first<WORD_BYTES>(), limits.messageBytes);
  if (std::holds_alternative<ErrorCode>(started)) return false;
  const auto& start = std::get<MessageStart>(started);
  require(start.segments >= 1 && start.segments <= MAX_SEGMENTS);
  input = input.subspan(WORD_BYTES);
  const std::size_t tableSize = start.restOfTable();
  if (input.size() < tableSize) return false;
  SegmentSizes sizes;
  if (readTable(start, input.first(tableSize), limits.messageBytes, sizes)) return false;
  input = input.subspan(tableSize);
  const std::size_t bodySize = sizes.totalWords * WORD_BYTES;
  require(WORD_BYTES + tableSize + bodySize <= limits.messageBytes);
  if (input.size() < bodySize) return false;

  // Into memory of its own, so that a read behind the end is seen.
  auto body = kj::heapArray<capnp::word>(sizes.totalWords);
  if (bodySize > 0) std::memcpy(body.begin(), input.data(), bodySize);
  input = input.subspan(bodySize);
  std::vector<kj::ArrayPtr<const capnp::word>> segments;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < start.segments; ++i) {
    segments.push_back(body.slice(offset, offset + sizes.words.at(i)));
    offset += sizes.words.at(i);
  }
  Verdict verdict = ErrorCode::BAD_MESSAGE;
  const auto malformed = kj::runCatchingExceptions([&]() {
    capnp::SegmentArrayMessageReader reader(
        kj::arrayPtr(segments.data(), segments.size()),
        {.traversalLimitInWords = limits.messageBytes / WORD_BYTES,
         .nestingLimit = limits.nesting});
    verdict = inspectInbound(reader.getRoot<capnp::rpc::Message>(), answers, limits,
                             kj::origin<kj::TimePoint>());
  });
  require(answers.callsInFlight() <= limits.callsInFlight);
  if (malformed != nullptr || std::holds_alternative<ErrorCode>(verdict)) return false;
  if (auto* replacement = std::get_if<Replacement>(&verdict)) checkReplacement(**replacement);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const PeerLimits limits;
  AnswerTable answers(limits);
  auto input = std::as_bytes(std::span(data, size));
  while (takeMessage(input, answers, limits)) {
  }
  return 0;
}
