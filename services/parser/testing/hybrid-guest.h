// A hybrid socket in the test's own event loop, behind which a guest answers as it is told.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <kj/async-io.h>

#include "common/channel/message.h"

namespace cordon::tests {

class HybridGuest final : private kj::TaskSet::ErrorHandler {
 public:
  // Bytes of the reply, after which the connection is closed; nothing: it is held open in silence.
  using Script = std::function<std::optional<std::string>(const channel::Message& request,
                                                          const std::string& bulk)>;

  // Listens at `path`, whose folder it makes.
  HybridGuest(kj::AsyncIoContext& io, const std::string& path, Script script);

  [[nodiscard]] unsigned connections() const { return accepted; }
  // Connections that the host has not closed yet.
  [[nodiscard]] unsigned open() const { return openNow; }

 private:
  struct Connection;
  kj::Promise<void> accept();
  kj::Promise<void> readLine(Connection& connection);
  kj::Promise<void> readRequest(Connection& connection);
  kj::Promise<void> answer(Connection& connection);
  void taskFailed(kj::Exception&& exception) override;

  Script script;
  kj::Own<kj::ConnectionReceiver> listener;
  unsigned accepted = 0;
  unsigned openNow = 0;
  kj::TaskSet tasks;
};

}  // namespace cordon::tests
