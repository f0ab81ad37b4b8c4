#include "common/records/junit/reader.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <expat.h>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <sys/auxv.h>
#include <utility>

#include "common/channel/sha256.h"
#include "common/records/junit/memory.h"
#include "common/records/junit/report-builder.h"
#include "common/records/junit/text-scan.h"
#include "common/records/junit/words.h"

namespace cordon::records {

namespace {

// What keeps a document from choosing names that collide in expat's tables. Left to itself, expat
// asks the kernel for it, and the sandbox of a reader (policy/seccomp/parser-model.policy) kills
// for that. So it is made of the random bytes that the process got with its start (getauxval(3)):
// of a digest, since the C library guards its stack with the same bytes.
unsigned long hashSalt() {
  constexpr std::size_t RANDOM_BYTES = 16;
  // The kernel gives an address as a number.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* random = reinterpret_cast<const std::byte*>(getauxval(AT_RANDOM));
  const auto digest = channel::sha256Of(std::span(random, RANDOM_BYTES));
  unsigned long salt = 0;
  std::memcpy(&salt, digest.data(), sizeof(salt));
  return salt | 1;  // 0 would mean that expat is to make one
}

constexpr std::string_view UTF8_MARK = "\xef\xbb\xbf";

bool isUnparsable(Reason reason) {
  return reason >= Reason::NOT_WELL_FORMED && reason <= Reason::NO_ROOT;
}

// Errors of a document that ends too early, and that say nothing of the bytes before its end.
bool isOfTheEnd(XML_Error error) {
  return error == XML_ERROR_NO_ELEMENTS || error == XML_ERROR_UNCLOSED_TOKEN ||
         error == XML_ERROR_PARTIAL_CHAR || error == XML_ERROR_ASYNC_ENTITY ||
         error == XML_ERROR_UNCLOSED_CDATA_SECTION;
}

// Of the first bytes. UTF-32 has no mark of its own here: it is not text of any encoding we know.
std::optional<Reason> foreignMark(std::string_view bytes) {
  const std::string_view front = bytes.substr(0, 2);
  if (front == "\xfe\xff") return Reason::ENCODING;
  if (front != "\xff\xfe") return std::nullopt;
  return bytes.substr(2, 2) == std::string_view("\0\0", 2) ? Reason::NOT_UTF8 : Reason::ENCODING;
}

}  // namespace

std::chrono::nanoseconds threadProcessorTime() {
  timespec time{};
  // Cannot fail: the clock exists and the pointer is good.
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class JunitReader::Impl {
 public:
  Impl(const JunitLimits& caps, Clock processorTime)
      : limits(caps), clock(std::move(processorTime)), budget(limits.memory) {
    limits.pieceBytes =
        std::max<std::size_t>(std::min(limits.pieceBytes, limits.tokenBytes / 2), 4);
    builder.emplace(limits, budget);
    spent = -clock();
    const BudgetScope scope(budget);
    const char separator[] = {NAMESPACE_SEPARATOR, '\0'};
    // It overrides what the document declares, which is checked in onDeclaration().
    parser = XML_ParserCreate_MM("UTF-8", &budgetedAllocator(), separator);
    if (parser == nullptr) {
      decide(Reason::OUT_OF_MEMORY, 0);
    } else {
      XML_SetUserData(parser, this);
      XML_SetHashSalt(parser, hashSalt());
#if CORDON_EXPAT_DEFERS
      // Its own way of putting a long token off would hide from us how far it has come.
      XML_SetReparseDeferralEnabled(parser, XML_FALSE);
#endif
      XML_SetXmlDeclHandler(parser, onDeclaration);
      XML_SetStartDoctypeDeclHandler(parser, onDoctype);
      XML_SetElementHandler(parser, onStart, onEnd);
      XML_SetCharacterDataHandler(parser, onText);
      XML_SetStartNamespaceDeclHandler(parser, onNamespace);
      beginPiece(limits.pieceBytes);
    }
    spent += clock();
  }
  ~Impl() {
    dropParser();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool feed(std::string_view bytes) {
    if (reason) return false;
    const auto started = clock();
    while (!bytes.empty() && !reason) {
      // What is over the cap is a violation only where nothing before it was one.
      const std::uint64_t room = std::min<std::uint64_t>(pieceSize, limits.bytes - fed) - filled;
      if (room == 0) {
        if (!inspectPiece()) parseFront(Reason::TOO_MANY_BYTES, limits.bytes);
        break;
      }
      const std::size_t taken = std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(room));
      std::memcpy(piece + filled, bytes.data(), taken);
      filled += taken;
      bytes.remove_prefix(taken);
      if (filled == pieceSize) parsePiece(started);
    }
    spent += clock() - started;
    return !reason;
  }

  JunitReport finish() {
    if (!reason) {
      const auto started = clock();
      finishPiece();
      spent += clock() - started;
    }
    // The list is about to be copied: what is no longer needed goes first.
    dropParser();
    if (reason) {
      const Status status = isUnparsable(*reason) ? Status::UNPARSABLE : Status::REFUSED;
      return builder->abandon(status, *reason, offset);
    }
    return builder->finish();
  }

  [[nodiscard]] std::size_t peakMemory() const {
    return budget.peak();
  }

 private:
  void decide(Reason why, std::uint64_t where) {
    if (reason) return;
    reason = why;
    offset = where;
  }

  void dropParser() {
    if (parser != nullptr) XML_ParserFree(std::exchange(parser, nullptr));
  }

  // ---- pieces ----
  // Expat reads an incomplete token anew with each piece. So pieces are of our size, whatever the
  // feeds are: they grow with the token that is open, and end where it reaches its cap. A character
  // that the end of a piece cuts is kept for the next one: expat, too, must see it whole or not.

  void beginPiece(std::size_t size) {
    pieceSize = size;
    filled = 0;
    const BudgetScope scope(budget);
    piece = static_cast<char*>(XML_GetBuffer(parser, static_cast<int>(size)));
    if (piece == nullptr) return decide(Reason::OUT_OF_MEMORY, fed);
    filled = cut.copy(piece, cut.size());
  }

  [[nodiscard]] std::size_t nextPieceSize(std::size_t open) const {
    if (open == 0) return limits.pieceBytes;
    std::size_t step = limits.tokenBytes;
    while (step / 2 >= 2 * open && step / 2 >= open + limits.pieceBytes / 2) step /= 2;
    return step - open;
  }

  void parsePiece(std::chrono::nanoseconds started) {
    if (inspectPiece()) return;
    cut.assign(piece + inspected.good, filled - inspected.good);
    parse(inspected.good, false);
    if (reason) return;
    if (spent + clock() - started > limits.processorTime) return decide(Reason::OUT_OF_TIME, fed);
    const XML_Index at = XML_GetCurrentByteIndex(parser);
    if (at >= 0) tokenStart = static_cast<std::uint64_t>(at);
    const std::uint64_t open = fed - tokenStart;
    if (open >= limits.tokenBytes) {
      return decide(Reason::TOKEN_TOO_LONG, tokenStart + limits.tokenBytes);
    }
    beginPiece(std::max(nextPieceSize(static_cast<std::size_t>(open)), inspected.cutLength));
  }

  // Looks at the piece before expat does. True where that decided.
  bool inspectPiece() {
    const std::string_view bytes(piece, filled);
    if (fed == 0) {
      if (const auto mark = foreignMark(bytes)) {
        decide(*mark, 0);
        return true;
      }
    }
    if (!anyContent) {
      const std::size_t skipped = fed == 0 && bytes.starts_with(UTF8_MARK) ? UTF8_MARK.size() : 0;
      anyContent = bytes.find_first_not_of(" \t\r\n", skipped) != std::string_view::npos;
    }
    inspected = scanText(bytes);
    if (inspected.fault == Reason::NONE) return false;
    parseFront(inspected.fault, fed + inspected.good);
    return true;
  }

  // Of the piece only the good characters, and what stands behind them decides if nothing in there
  // does.
  void parseFront(Reason fault, std::uint64_t where) {
    parse(inspected.good, true, true);
    decide(fault, where);
  }

  void finishPiece() {
    if (inspectPiece()) return;
    if (inspected.cutLength > 0) return parseFront(Reason::NOT_UTF8, fed + inspected.good);
    if (!anyContent) return;
    parse(filled, true);
  }

  // `goesOn`: the document does, but not for expat.
  void parse(std::size_t size, bool last, bool goesOn = false) {
    const BudgetScope scope(budget);
    const XML_Status status = XML_ParseBuffer(parser, static_cast<int>(size), last ? 1 : 0);
    fed += size;
    if (status == XML_STATUS_OK || reason) return;
    const XML_Error error = XML_GetErrorCode(parser);
    if (goesOn && isOfTheEnd(error)) return;
    // What expat takes for the place of junk behind the root depends on how much of it it has.
    decide(reasonOf(error), rootEnd.value_or(here()));
  }

  // ---- what expat says ----

  [[nodiscard]] std::uint64_t here() const {
    const XML_Index at = XML_GetCurrentByteIndex(parser);
    return at < 0 ? 0 : static_cast<std::uint64_t>(at);
  }

  [[nodiscard]] Reason reasonOf(XML_Error error) const {
    switch (error) {
      case XML_ERROR_NO_MEMORY:
      case XML_ERROR_AMPLIFICATION_LIMIT_BREACH:
        return Reason::OUT_OF_MEMORY;
      case XML_ERROR_NO_ELEMENTS:
        return builder->elements() == 0 ? Reason::NO_ROOT : Reason::NOT_WELL_FORMED;
      case XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
        return tagFollows() ? Reason::SECOND_ROOT : Reason::NOT_WELL_FORMED;
      case XML_ERROR_BAD_CHAR_REF:
      case XML_ERROR_UNDEFINED_ENTITY:
        return Reason::ILLEGAL_REFERENCE;
      default:
        return Reason::NOT_WELL_FORMED;
    }
  }

  // Whether an element starts where expat stopped.
  [[nodiscard]] bool tagFollows() const {
    int at = 0;
    int size = 0;
    const char* context = XML_GetInputContext(parser, &at, &size);
    if (context == nullptr || at < 0 || at + 1 >= size || context[at] != '<') return false;
    return std::string_view("!?/").find(context[at + 1]) == std::string_view::npos;
  }

  void stop(Reason why) {
    decide(why, here());
    XML_StopParser(parser, XML_FALSE);
  }

  // Expat may call on after it was stopped; and no exception may pass through it.
  template <class Act>
  static void handle(void* self, Act&& act) {
    auto& impl = *static_cast<Impl*>(self);
    if (impl.reason) return;
    Reason refused = Reason::NONE;
    try {
      refused = act(impl);
    } catch (const std::bad_alloc&) {
      refused = Reason::OUT_OF_MEMORY;
    }
    if (refused != Reason::NONE) impl.stop(refused);
  }

  static void XMLCALL onDeclaration(void* self, const char* version, const char* encoding, int) {
    handle(self, [&](Impl&) {
      if (version == nullptr || std::string_view(version) != "1.0") return Reason::XML_VERSION;
      if (encoding != nullptr && !equalsIgnoringCase(encoding, "utf-8")) return Reason::ENCODING;
      return Reason::NONE;
    });
  }

  static void XMLCALL onDoctype(void* self, const char*, const char*, const char*, int) {
    handle(self, [](Impl&) { return Reason::DOCTYPE; });
  }

  static void XMLCALL onNamespace(void* self, const char* prefix, const char* uri) {
    handle(self, [&](Impl& impl) { return impl.builder->declareNamespace(prefix, uri); });
  }

  static void XMLCALL onStart(void* self, const char* name, const char** attributes) {
    handle(self, [&](Impl& impl) { return impl.builder->startElement(name, attributes); });
  }

  static void XMLCALL onEnd(void* self, const char*) {
    handle(self, [](Impl& impl) {
      impl.builder->endElement();
      if (!impl.builder->isOpen()) {
        impl.rootEnd =
            impl.here() + static_cast<std::uint64_t>(XML_GetCurrentByteCount(impl.parser));
      }
      return Reason::NONE;
    });
  }

  static void XMLCALL onText(void* self, const char* text, int size) {
    handle(self, [&](Impl& impl) {
      impl.builder->text({text, static_cast<std::size_t>(size)});
      return Reason::NONE;
    });
  }

  JunitLimits limits;
  Clock clock;
  MemoryBudget budget;
  std::optional<ReportBuilder> builder;
  XML_Parser parser = nullptr;
  std::chrono::nanoseconds spent{};

  char* piece = nullptr;  // expat's buffer
  std::size_t pieceSize = 0;
  std::size_t filled = 0;
  TextScan inspected;     // of the piece
  std::string cut;        // the front of a character; the next piece begins with it
  std::uint64_t fed = 0;  // bytes that expat has seen
  std::uint64_t tokenStart = 0;
  bool anyContent = false;
  std::optional<std::uint64_t> rootEnd;

  std::optional<Reason> reason;
  std::uint64_t offset = 0;
};

JunitReader::JunitReader(const JunitLimits& limits, Clock clock)
    : impl(std::make_unique<Impl>(limits, std::move(clock))) {}
JunitReader::~JunitReader() = default;

bool JunitReader::feed(std::span<const std::byte> bytes) {
  return impl->feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
JunitReport JunitReader::finish() {
  return impl->finish();
}
std::size_t JunitReader::peakMemory() const {
  return impl->peakMemory();
}

ExpatFacts expatFacts() {
  ExpatFacts facts{.version = XML_ExpatVersion()};
  for (const XML_Feature* feature = XML_GetFeatureList(); feature->feature != XML_FEATURE_END;
       ++feature) {
    // By its name: the number is missing in the header of an expat that lacks the feature.
    facts.allocationTracker |= std::string_view(feature->name) == "XML_AT_MAX_AMP";
  }
  return facts;
}

}  // namespace cordon::records
