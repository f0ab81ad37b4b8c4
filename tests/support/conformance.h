// The conformance suite of the guest channel (channel.md §18.1), over any way of reaching a guest.
// A test program gives it a client and runs each case; the cases assert with GoogleTest.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "common/channel/message.h"
#include "services/parser/outcome.h"

namespace cordon::tests {

// One guest, as a test sees it: operations that block, and bulk in strings. The id of a request is
// the client's to choose unless one is given.
class ConformanceClient {
 public:
  virtual ~ConformanceClient() = default;
  virtual parser::Outcome<parser::Pong> ping() = 0;
  // `input` has a value exactly where request.dataSize has one. `output` and `errors` are what the
  // sinks were given.
  virtual parser::Outcome<parser::Finished> exec(channel::Exec request,
                                                 const std::optional<std::string>& input,
                                                 std::string& output, std::string& errors,
                                                 std::optional<channel::Id> id = {}) = 0;
  virtual parser::Outcome<parser::Content> readFile(channel::ReadFile request,
                                                    std::string& content) = 0;
  virtual parser::Outcome<parser::Written> writeFile(channel::WriteFile request,
                                                     const std::string& content) = 0;
  virtual parser::Outcome<parser::Polled> poll(const channel::Id& target) = 0;
  virtual parser::Outcome<parser::DiagReport> diag(std::int64_t maxEntries) = 0;
  // Connections made so far, where this client can tell: an exchange is one.
  virtual std::optional<unsigned> exchanges() { return std::nullopt; }
};

// What the guest must offer. The defaults suit any Linux guest with a POSIX shell.
struct Vocabulary {
  std::vector<std::string> echo{"echo", "hello"};  // prints "hello\n", ends with 0
  std::vector<std::string> complain{"sh", "-c", "printf complaint >&2; exit 3"};
  std::vector<std::string> copy{"cat"};
  std::vector<std::string> sleepTwoSeconds{"sleep", "2"};
  // Prints its directory, its user and ANSWER of its environment, a line each.
  std::vector<std::string> whereAmI{"sh", "-c", "pwd; id -un; echo \"$ANSWER\""};
  std::vector<std::string> killItself{"sh", "-c", "kill -9 $$"};
  // An existing user other than the default one, and a directory where it may be.
  std::string user = "nobody";
  std::string directory = "/usr";
  // Where the default user may write.
  std::string scratch = "/tmp";
};

struct ConformanceCase {
  const char* name;
  void (*run)(ConformanceClient& client, const Vocabulary& guest);
  bool countsExchanges = false;  // fails where the client cannot tell them
};
const std::vector<ConformanceCase>& conformanceCases();
void PrintTo(const ConformanceCase& one, std::ostream* out);  // for GoogleTest

}  // namespace cordon::tests
