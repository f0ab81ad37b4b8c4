// From the elements of a JUnit document to what is made of it: knows the format's meaning, and
// nothing of bytes. Internal.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/channel/message.h"
#include "common/records/junit/case-list.h"
#include "common/records/junit/claims.h"
#include "common/records/junit/junit.h"
#include "common/records/junit/key-table.h"
#include "common/records/junit/limits.h"
#include "common/records/junit/memory.h"
#include "common/records/junit/words.h"

namespace cordon::records {

// Stands between namespace and local name; no character of XML.
inline constexpr char NAMESPACE_SEPARATOR = '\x01';

class ReportBuilder {
 public:
  ReportBuilder(const JunitLimits& caps, MemoryBudget& memory);

  // Names as expat gives them, namespace and separator first where there is one; `attributes` is
  // names and values by turns, ended by a null. Returns why the document is refused here, or NONE;
  // after a refusal only finish() may follow.
  Reason declareNamespace(const char* prefix, const char* uri);
  Reason startElement(std::string_view name, const char* const* attributes);
  void endElement();
  void text(std::string_view text);

  [[nodiscard]] std::uint64_t elements() const { return elementCount; }
  // Whether an element is open.
  [[nodiscard]] bool isOpen() const { return !frames.empty(); }
  // Status OK or EMPTY, of a document that is complete. The builder is used up.
  JunitReport finish();
  // Of one that ends early: no list.
  JunitReport abandon(Status status, Reason reason, std::uint64_t offset);

 private:
  enum class Kind : std::uint8_t { SUITE, CASE, ORPHAN, RESULT, OUTPUT, PLAIN };
  struct Frame {
    Kind kind = Kind::PLAIN;
    bool inOutput = false;  // in system-out or system-err of the innermost case
    bool kept = false;      // its text belongs to the innermost case
  };
  struct Suite {
    bool named = false;  // a testsuite, whose name is in the path; else testsuites
    std::string name;    // cut to what a case may keep
    bool cut = false;
    channel::Sha256 path{};  // of the names of all named suites down to this one
    SuiteClaims claims;
    SuiteCount count;
  };
  struct Case {
    bool orphan = false;  // a result element that stands for a case
    bool nameless = false;
    CaseKey key{};
    CaseList::Index listed = CaseList::NONE;
    CaseOutcome outcome = CaseOutcome::PASSED;
    std::uint64_t attempts = 1;
    std::bitset<8> said{};     // outcomes that it was given in so many words
    bool saysSkipped = false;  // by a child
    bool hasText = false;
    bool newPart = false;  // the next text begins another part
  };

  // The attributes of the element that starts, known and counted.
  struct Attribute {
    Word word;
    std::string_view name;
    std::string_view value;
  };
  Reason readAttributes(const char* const* given);
  bool countName(std::string_view name, Word word);
  void startForeign(std::string_view localName);
  Reason openSuite(Word word);
  Reason openCase();
  Reason openOrphan();
  Reason enterCase(std::string_view className, std::string_view name, bool orphan);
  CaseList::Index listCase(std::string_view className, std::string_view name);
  Reason openResult(Word word, Frame& frame);
  void beginPart(Case& open);
  Case* innermostCase();
  void closeSuite();
  void closeCase();
  std::uint64_t& totalOf(CaseOutcome outcome);

  const JunitLimits& limits;
  MemoryBudget& budget;
  JunitReport report;
  CaseList list;
  KeyTable keys;
  struct KeyHash {
    std::size_t operator()(const CaseKey& key) const { return key.hash(); }
  };
  std::unordered_map<CaseKey, CaseList::Index, KeyHash> listedKeys;

  std::vector<Frame> frames;  // the open elements but those of a foreign subtree
  std::size_t foreignDepth = 0;
  std::vector<Suite> suites;
  std::vector<Case> cases;
  std::vector<Attribute> attributes;
  std::uint64_t elementCount = 0;
  std::uint64_t caseCount = 0;  // keys and nameless ones
  std::bitset<WORD_COUNT> knownNames;
  std::unordered_set<std::string> otherNames;
  std::unordered_set<std::string> namespaces;
  bool excessClaims = false;
};

}  // namespace cordon::records
