#include "tests/hostile/behaviours.h"

#include <utility>

#include "tests/support/virtual-client.h"

namespace cordon::tests {

std::vector<Behaviour> allBehaviours() {
  std::vector<Behaviour> all = framingBehaviours();
  for (auto& one : payloadBehaviours()) all.push_back(std::move(one));
  for (auto& one : conversationBehaviours()) all.push_back(std::move(one));
  return all;
}

std::string honestReply(Driver driver, const channel::Id& id) {
  switch (driver) {
    case Driver::PING:
      return pong(id);
    case Driver::EXEC:
      return result(id, "abc", "de");
    case Driver::READ:
      return file(id, "abc");
    case Driver::WRITE:
      return ok(id);
    case Driver::POLL:
      return result(VirtualClient::TARGET, "abc", "de");
    case Driver::DIAG:
      break;
  }
  return wire(id, channel::DiagResult{});
}

}  // namespace cordon::tests
