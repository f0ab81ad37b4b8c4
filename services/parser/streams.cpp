#include "services/parser/streams.h"

namespace cordon::parser {
namespace {

// Words of a call besides its bulk: message, target, payload, parameters.
constexpr capnp::MessageSize CALL_SIZE{.wordCount = 32, .capCount = 0};

}  // namespace

RemoteSource::RemoteSource(protocols::ByteSource::Client client) : source(kj::mv(client)) {}

kj::Promise<kj::Array<const kj::byte>> RemoteSource::read(std::uint64_t offset, std::size_t size) {
  auto request = source.readRequest(CALL_SIZE);
  request.setOffset(offset);
  request.setSize(static_cast<std::uint32_t>(size));
  return request.send().then([](capnp::Response<protocols::ByteSource::ReadResults>&& response) {
    const kj::ArrayPtr<const kj::byte> bytes = response.getBytes();
    return bytes.attach(kj::mv(response));
  });
}

RemoteSink::RemoteSink(protocols::ByteSink::Client client) : sink(kj::mv(client)) {}

kj::Promise<void> RemoteSink::write(kj::ArrayPtr<const kj::byte> bytes) {
  if (bytes.size() >= PIECE) {
    return flush().then([this, bytes]() { return send(bytes); });
  }
  gathered.insert(gathered.end(), bytes.begin(), bytes.end());
  return gathered.size() < PIECE ? kj::Promise<void>(kj::READY_NOW) : flush();
}

kj::Promise<void> RemoteSink::end() {
  return flush().then([this]() { return sink.endRequest(CALL_SIZE).send().ignoreResult(); });
}

kj::Promise<void> RemoteSink::flush() {
  if (gathered.empty()) return kj::READY_NOW;
  auto sent = send(kj::arrayPtr(gathered.data(), gathered.size()));
  gathered.clear();
  return sent;
}

kj::Promise<void> RemoteSink::send(kj::ArrayPtr<const kj::byte> bytes) {
  auto request = sink.writeRequest(capnp::MessageSize{
      .wordCount = CALL_SIZE.wordCount + bytes.size() / sizeof(capnp::word), .capCount = 0});
  request.setBytes(bytes);
  return request.send();
}

}  // namespace cordon::parser
