#include "tests/hostile/hybrid-endpoint.h"

#include <array>
#include <string_view>
#include <sys/stat.h>
#include <utility>

#include <kj/debug.h>

namespace cordon::tests {
namespace {

constexpr std::string_view REQUEST = "CONNECT 5000\n";
constexpr std::string_view OK = "OK 1073741824\n";
constexpr std::string_view NO_PORT = "OK \n";

kj::Promise<void> say(kj::AsyncIoStream& stream, std::string_view text) {
  return stream.write(text.data(), text.size());
}

}  // namespace

HybridEndpoint::HybridEndpoint(kj::AsyncIoContext& io, const std::string& path, Script script,
                               DialScript dial, unsigned haste)
    : dials(std::move(dial)),
      guest(io.provider->getTimer(), std::move(script), nullptr, haste),
      listener(io.provider->getNetwork()
                   .parseAddress(kj::str("unix:", path.c_str()))
                   .wait(io.waitScope)
                   ->listen()),
      tasks(*this) {
  // Whoever dials is of another uid.
  KJ_SYSCALL(::chmod(path.c_str(), 0666));
  tasks.add(accept());
}

kj::Promise<void> HybridEndpoint::accept() {
  return listener->accept().then([this](kj::Own<kj::AsyncIoStream>&& stream) {
    const unsigned number = ++count;
    ++greeting;
    tasks.add(
        greet(kj::mv(stream), dials ? dials(number) : Dial(DialWorks{})).attach(kj::defer([this]() {
          --greeting;
        })));
    return accept();
  });
}

kj::Promise<void> HybridEndpoint::greet(kj::Own<kj::AsyncIoStream> stream, Dial dial) {
  struct Greeting {
    kj::Own<kj::AsyncIoStream> stream;
    Dial dial;
    std::array<char, REQUEST.size()> heard{};
  };
  auto own = kj::heap<Greeting>(Greeting{.stream = kj::mv(stream), .dial = std::move(dial)});
  Greeting& one = *own;
  return one.stream->read(one.heard.data(), one.heard.size())
      .then([this, &one]() -> kj::Promise<void> {
        if (std::string_view(one.heard.data(), one.heard.size()) != REQUEST)
          return KJ_EXCEPTION(FAILED, "not the handshake of the guest channel");
        if (std::holds_alternative<DialHangs>(one.dial)) return one.stream->whenWriteDisconnected();
        if (std::holds_alternative<parser::Unreachable>(one.dial)) return kj::READY_NOW;
        if (const auto* tamper = std::get_if<parser::Tamper>(&one.dial)) {
          if (tamper->type != parser::TamperClass::HANDSHAKE)
            return KJ_EXCEPTION(FAILED, "no socket can play this");
          return say(*one.stream, NO_PORT);
        }
        return say(*one.stream, OK).then([this, &one]() {
          const auto* deaf = std::get_if<DialIsDeaf>(&one.dial);
          guest.serve(kj::mv(one.stream),
                      deaf != nullptr ? std::optional(deaf->saying) : std::nullopt);
        });
      })
      .attach(kj::mv(own));
}

void HybridEndpoint::taskFailed(kj::Exception&& exception) {
  // The host may hang up at any time.
  if (exception.getType() != kj::Exception::Type::DISCONNECTED)
    kj::throwFatalException(kj::mv(exception));
}

}  // namespace cordon::tests
