// The real agent, served on a Unix socket, in a world of the test's own making.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include <gtest/gtest.h>

#include "common/channel/decoder.h"
#include "common/channel/message.h"
#include "services/guest/fd.h"

namespace cordon::guest {

// A private mount namespace whose /etc/passwd and /etc/group know these users, once a test process.
struct World {
  static constexpr uid_t AGENT = 61001;     // groups 61001 and 61010
  static constexpr uid_t POSTGRES = 61002;  // groups 61002, 61010 and 61011
  static constexpr uid_t HOMELESS = 61003;  // a home that does not exist, no shell
  std::string root;                         // a directory for the test's files, searchable by all

  [[nodiscard]] std::string home(const std::string& user) const { return root + "/homes/" + user; }
};
// Skips the test (false) where it does not run as root.
bool enterWorld(World& world);
// The same world with /etc/passwd lacking `agent`.
void removeAgentUser(const World& world);

// What came back on a connection.
struct Got {
  // The reply, or nothing where the peer closed without one.
  std::optional<channel::Message> message;
  std::string bulk;
  std::optional<channel::DecodeError> error;
  // The peer closed right behind the reply.
  bool cleanEnd = false;

  template <typename Body>
  const Body& as() const {
    static const Body NONE{};
    const Body* body = message ? std::get_if<Body>(&message->body) : nullptr;
    EXPECT_NE(body, nullptr) << "the reply is "
                             << (message ? std::string(message->kind()) : std::string("missing"));
    return body != nullptr ? *body : NONE;
  }
};

channel::Id freshId();
std::string shellQuoted(const std::string& text);

class AgentTest : public testing::Test {
 public:
  ~AgentTest() override;

 protected:
  void SetUp() override;
  // Starts (or restarts) the agent and returns once it answers a ping. `openFiles`: its hard limit.
  void start(const std::vector<std::string>& arguments = {}, rlim_t openFiles = 0,
             std::optional<uid_t> uid = std::nullopt);
  void stop();

  // Covers a directory with an empty file system of `size` bytes until the test ends. An agent that
  // runs sees it too.
  void coverWithTmpfs(const std::string& directory, std::size_t size);

  Fd connect() const;
  // Sends as much as the peer takes; false if it closed first.
  static bool send(const Fd& socket, std::string_view bytes);
  static Got receive(const Fd& socket);

  Got call(const channel::Message& message, std::string_view bulk = {}) const;
  Got ask(channel::Body body, std::string_view bulk = {}) const;
  // An exec of `sh -c script`.
  static channel::Exec shell(const std::string& script);
  Got run(const std::string& script) const { return ask(shell(script)); }
  std::vector<channel::DiagEntry> diag() const;
  // The newest diag entry with that event.
  std::optional<channel::DiagEntry> diagEntry(std::string_view event) const;

  World world;
  // Called in the child, last before the agent's exec.
  std::function<void()> beforeExec = nullptr;
  pid_t pid = -1;
  std::vector<pid_t> started;  // by start()
  std::string socketPath;
  std::vector<std::string> covered;
};

std::string stdoutOf(const Got& got);
std::string stderrOf(const Got& got);
std::string readWhole(const std::string& path);
void writeWhole(const std::string& path, std::string_view content);
// Waits (up to 10 s) until `condition` holds: for what another process does in its own time.
template <typename Condition>
bool eventually(Condition condition);
void shortNap();

template <typename Condition>
bool eventually(Condition condition) {
  for (int round = 0; round < 2000; ++round) {
    if (condition()) return true;
    shortNap();
  }
  return condition();
}

}  // namespace cordon::guest
