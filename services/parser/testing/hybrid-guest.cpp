#include "services/parser/testing/hybrid-guest.h"

#include <array>
#include <filesystem>
#include <span>
#include <utility>
#include <variant>

#include <kj/debug.h>

#include "common/channel/decoder.h"

namespace cordon::tests {

struct HybridGuest::Connection {
  Connection(HybridGuest& of, kj::Own<kj::AsyncIoStream> from) : guest(of), stream(kj::mv(from)) {
    ++guest.openNow;
  }
  ~Connection() noexcept(false) { --guest.openNow; }
  KJ_DISALLOW_COPY(Connection);

  HybridGuest& guest;
  kj::Own<kj::AsyncIoStream> stream;
  std::string line;
  std::array<kj::byte, 65536> buffer{};
  channel::Decoder decoder{channel::GUEST_INBOUND_BULK_CAP};
  std::string bulk;
  std::string reply;
};

HybridGuest::HybridGuest(kj::AsyncIoContext& io, const std::string& path, Script whatItSays)
    : script(std::move(whatItSays)), tasks(*this) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  auto address =
      io.provider->getNetwork().parseAddress(kj::str("unix:", path.c_str())).wait(io.waitScope);
  listener = address->listen();
  tasks.add(accept());
}

kj::Promise<void> HybridGuest::accept() {
  return listener->accept().then([this](kj::Own<kj::AsyncIoStream>&& stream) {
    ++accepted;
    auto connection = kj::heap<Connection>(*this, kj::mv(stream));
    auto life = readLine(*connection);
    tasks.add(life.attach(kj::mv(connection)));
    return accept();
  });
}

kj::Promise<void> HybridGuest::readLine(Connection& connection) {
  return connection.stream->read(connection.buffer.data(), 1).then([this, &connection]() {
    connection.line += static_cast<char>(connection.buffer[0]);
    if (connection.line.back() != '\n') return readLine(connection);
    KJ_REQUIRE(connection.line == "CONNECT 5000\n");
    const kj::StringPtr OK = "OK 1073741824\n";
    return connection.stream->write(OK.begin(), OK.size()).then([this, &connection]() {
      return readRequest(connection);
    });
  });
}

kj::Promise<void> HybridGuest::readRequest(Connection& connection) {
  return connection.stream->tryRead(connection.buffer.data(), 1, connection.buffer.size())
      .then([this, &connection](std::size_t size) -> kj::Promise<void> {
        if (size == 0) return kj::READY_NOW;
        auto input = std::as_bytes(std::span(connection.buffer.data(), size));
        for (;;) {
          const auto event = connection.decoder.next(input);
          if (const auto* part = std::get_if<channel::Decoder::Bulk>(&event)) {
            connection.bulk.append(reinterpret_cast<const char*>(part->bytes.data()),
                                   part->bytes.size());
          } else if (std::holds_alternative<channel::Decoder::Done>(event)) {
            return answer(connection);
          } else if (std::holds_alternative<channel::Decoder::NeedMore>(event)) {
            return readRequest(connection);
          } else if (!std::holds_alternative<channel::Decoder::Control>(event)) {
            throw std::runtime_error("an illegal request");
          }
        }
      });
}

kj::Promise<void> HybridGuest::answer(Connection& connection) {
  const auto said = script(*connection.decoder.message(), connection.bulk);
  if (!said) return connection.stream->readAllBytes().ignoreResult();
  connection.reply = *said;
  return connection.stream->write(connection.reply.data(), connection.reply.size());
}

void HybridGuest::taskFailed(kj::Exception&& exception) {
  // The host hung up: its right at any time.
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) return;
  kj::throwFatalException(kj::mv(exception));
}

}  // namespace cordon::tests
