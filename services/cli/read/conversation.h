// What is said between this program and the parser that reads its file.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <kj/async-io.h>
#include <kj/io.h>

#include "common/ipc/rpc-peer.h"
#include "common/records/coverage/coverage.h"
#include "common/records/junit/junit.h"
#include "common/records/verdicts/verdicts.h"
#include "protocols/records.capnp.h"

namespace cordon::cli {

// No answer that may be used.
struct NoAnswer {
  enum class Why { LOST, SILENT, BREACH };  // ended; took longer than its time; broke the contract
  Why why = Why::LOST;
  std::string detail;  // our own words, or a code of common/ipc/error.h
};

template <typename Report>
using Answer = std::variant<Report, NoAnswer>;

// One question; the parser answers no second one.
class Conversation {
 public:
  // socket: connected, non-blocking. patience: for the whole answer.
  Conversation(kj::AutoCloseFd socket, kj::Duration patience);
  ~Conversation() noexcept(false);
  KJ_DISALLOW_COPY(Conversation);

  Answer<records::JunitReport> askJunit();
  Answer<records::VerdictsReport> askVerdicts();
  // window: nothing for the whole of the file
  Answer<records::CoverageReport> askCoverage(const std::optional<records::Window>& window);

 private:
  template <typename Report, typename Ask>
  Answer<Report> ask(Ask&& question);
  template <typename Results>
  capnp::Response<Results> await(capnp::RemotePromise<Results> call);

  kj::AsyncIoContext io;
  kj::Duration patience;
  kj::Own<ipc::RpcPeer> peer;
  kj::Promise<void> watching = nullptr;
  protocols::RecordFile::Client file = nullptr;
};

}  // namespace cordon::cli
