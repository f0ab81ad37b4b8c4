#include "services/cli/read/conversation.h"

#include <utility>

#include <kj/exception.h>

#include "common/ipc/error.h"
#include "services/cli/read/intake.h"

namespace cordon::cli {
namespace {

// Hands pieces to an intake that the question owns; the first breach ends the call.
template <typename Sink, typename Intake>
class PieceSink final : public Sink::Server {
 public:
  struct State {
    Intake intake;
    std::optional<Breach> breach;
  };
  explicit PieceSink(State& target) : state(target) {}

 protected:
  kj::Promise<void> write(typename Sink::Server::WriteContext context) override {
    return judge(state.intake.take(pieceOf(context.getParams())));
  }
  kj::Promise<void> end(typename Sink::Server::EndContext) override {
    return judge(state.intake.end());
  }

 private:
  static auto pieceOf(protocols::CaseSink::WriteParams::Reader params) { return params.getCases(); }
  static auto pieceOf(protocols::VerdictSink::WriteParams::Reader params) {
    return params.getRecords();
  }

  kj::Promise<void> judge(std::optional<Breach> breach) {
    if (!state.breach) state.breach = breach;
    if (state.breach) return ipc::makeException(ipc::ErrorCode::BAD_ARGUMENT);
    return kj::READY_NOW;
  }

  State& state;
};

using CasePieces = PieceSink<protocols::CaseSink, CaseIntake>;
using VerdictPieces = PieceSink<protocols::VerdictSink, VerdictIntake>;

constexpr kj::uint WRAP_FLAGS = kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP |
                                kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK;

template <typename Report>
Answer<Report> toAnswer(std::variant<Report, Breach> taken) {
  if (const auto* breach = std::get_if<Breach>(&taken)) {
    return NoAnswer{NoAnswer::Why::BREACH, breach->what};
  }
  return std::get<Report>(std::move(taken));
}

}  // namespace

Conversation::Conversation(kj::AutoCloseFd socket, kj::Duration time)
    : io(kj::setupAsyncIo()), patience(time) {
  peer = kj::heap<ipc::RpcPeer>(io.lowLevelProvider->wrapSocketFd(socket.release(), WRAP_FLAGS),
                                ipc::RpcPeer::Side::CLIENT, nullptr, ipc::PeerLimits{},
                                io.provider->getTimer());
  watching = peer->onEnd().ignoreResult().eagerlyEvaluate(nullptr);
  file = peer->bootstrap().castAs<protocols::RecordFile>();
}

Conversation::~Conversation() noexcept(false) = default;

template <typename Results>
capnp::Response<Results> Conversation::await(capnp::RemotePromise<Results> call) {
  kj::Promise<capnp::Response<Results>> response = kj::mv(call);
  return peer->within(patience, kj::mv(response)).wait(io.waitScope);
}

// `question` calls and turns the response into an answer: reading a hostile message may throw.
template <typename Report, typename Ask>
Answer<Report> Conversation::ask(Ask&& question) {
  std::optional<Answer<Report>> answer;
  auto failed = kj::runCatchingExceptions([&]() { answer = question(); });
  KJ_IF_MAYBE (exception, failed) {
    const auto code = ipc::codeOf(*exception);
    const auto why = code == ipc::ErrorCode::DEADLINE ? NoAnswer::Why::SILENT : NoAnswer::Why::LOST;
    return NoAnswer{why, std::string(ipc::name(code))};
  }
  return std::move(*answer);
}

Answer<records::JunitReport> Conversation::askJunit() {
  CasePieces::State state;
  auto answer = ask<records::JunitReport>([&]() {
    auto request = file.readJunitRequest();
    request.setCases(kj::heap<CasePieces>(state));
    auto response =
        peer->within(patience,
                     kj::Promise<capnp::Response<protocols::RecordFile::ReadJunitResults>>(
                         request.send()))
            .wait(io.waitScope);
    return toAnswer(takeJunit(response.getReport(), std::move(state.intake)));
  });
  if (state.breach) return NoAnswer{NoAnswer::Why::BREACH, state.breach->what};
  return answer;
}

Answer<records::VerdictsReport> Conversation::askVerdicts() {
  VerdictPieces::State state;
  auto answer = ask<records::VerdictsReport>([&]() {
    auto request = file.readVerdictsRequest();
    request.setVerdicts(kj::heap<VerdictPieces>(state));
    auto response =
        peer->within(patience,
                     kj::Promise<capnp::Response<protocols::RecordFile::ReadVerdictsResults>>(
                         request.send()))
            .wait(io.waitScope);
    return toAnswer(takeVerdicts(response.getReport(), std::move(state.intake)));
  });
  if (state.breach) return NoAnswer{NoAnswer::Why::BREACH, state.breach->what};
  return answer;
}

Answer<records::CoverageReport> Conversation::askCoverage(
    const std::optional<records::Window>& window) {
  return ask<records::CoverageReport>([&]() {
    auto request = file.readCoverageRequest();
    if (window) {
      auto bounds = request.getWindow().initBounds();
      bounds.setFromMs(window->fromMs);
      bounds.setToMs(window->toMs);
    } else {
      request.getWindow().setWhole();
    }
    auto response =
        peer->within(patience,
                     kj::Promise<capnp::Response<protocols::RecordFile::ReadCoverageResults>>(
                         request.send()))
            .wait(io.waitScope);
    return toAnswer(takeCoverage(response.getReport()));
  });
}

}  // namespace cordon::cli
