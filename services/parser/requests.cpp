#include "services/parser/requests.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "common/records/coverage/watermarks.h"
#include "services/parser/arguments.h"
#include "services/parser/guest-client.h"

namespace cordon::parser {
namespace {

constexpr std::uint32_t MIN_CID = 3;
constexpr std::uint32_t MAX_CID = 65535;
constexpr std::uint32_t MIN_POLL_MS = 100;
constexpr std::uint32_t MAX_INTERVAL_MS = 3'600'000;
constexpr std::uint32_t MAX_SILENCE_MS = 86'400'000;

// Reads arguments and keeps the first fault: each reader goes on with a harmless value.
class Reading {
 public:
  channel::Id id(capnp::Data::Reader bytes) {
    channel::Id value;
    if (bytes.size() != value.bytes.size()) {
      fail(ArgumentError::BAD_ID);
    } else {
      std::copy(bytes.begin(), bytes.end(), value.bytes.begin());
    }
    return value;
  }

  // No text of a request is longer than the frame that carries it; the bound spares the copy.
  std::string text(capnp::Text::Reader value) {
    const bool legal = value.size() <= channel::MAX_FRAME_PAYLOAD &&
                       std::find(value.begin(), value.end(), '\0') == value.end();
    if (!legal) {
      fail(value.size() > channel::MAX_FRAME_PAYLOAD ? ArgumentError::REQUEST_TOO_LARGE
                                                     : ArgumentError::BAD_TEXT);
      return {};
    }
    return {value.begin(), value.size()};
  }

  std::string path(capnp::Text::Reader value) {
    if (value.size() == 0 || value.size() > MAX_PATH_LENGTH) fail(ArgumentError::BAD_TEXT);
    return error ? std::string() : text(value);
  }

  std::int64_t number(std::uint64_t value, ArgumentError fault) {
    if (value > static_cast<std::uint64_t>(channel::MAX_WIRE_INTEGER)) {
      fail(fault);
      return 0;
    }
    return static_cast<std::int64_t>(value);
  }

  channel::Budget budget(protocols::Budget::Reader value) {
    channel::Budget result;
    const auto given = [this](std::uint64_t ms) -> std::optional<std::int64_t> {
      if (ms == 0) return std::nullopt;
      return number(ms, ArgumentError::BAD_BUDGET);
    };
    result.commandMs = given(value.getCommandMs());
    result.channelMs = given(value.getChannelMs());
    result.untimedBoundMs =
        given(value.getUntimedBoundMs()).value_or(channel::DEFAULT_UNTIMED_BOUND_MS);
    return result;
  }

  void fail(ArgumentError fault) {
    if (!error) error = fault;
  }

  template <typename T>
  Checked<T> result(T value) const {
    if (error) return *error;
    return value;
  }

  std::optional<ArgumentError> error;
};

template <typename Params>
Checked<PingCall> readPing(Params params) {
  Reading reading;
  PingCall call{.id = reading.id(params.getId()), .budget = reading.budget(params.getBudget())};
  return reading.result(call);
}

// Of what reads a file; how much of it is another matter.
template <typename Params>
ReadCall readFileCall(Reading& reading, Params params) {
  ReadCall call;
  call.id = reading.id(params.getId());
  call.request.path = reading.path(params.getPath());
  call.request.budget = reading.budget(params.getBudget());
  return call;
}

void readEnvironment(Reading& reading, capnp::List<protocols::ExecRequest::Entry>::Reader entries,
                     std::map<std::string, std::string>& environment) {
  if (entries.size() > MAX_ARGV) return reading.fail(ArgumentError::TOO_MANY);
  for (const auto entry : entries) {
    if (!environment.emplace(reading.text(entry.getName()), reading.text(entry.getValue()))
             .second) {
      reading.fail(ArgumentError::BAD_TEXT);
    }
    // The frame is not measured before it is made: without this a list of long values would be
    // copied whole.
    if (reading.error) return;
  }
}

}  // namespace

Checked<PingCall> readCall(protocols::GuestChannel::PingParams::Reader params) {
  return readPing(params);
}
Checked<PingCall> readCall(protocols::GuestChannel::PinSessionParams::Reader params) {
  return readPing(params);
}

Checked<ExecCall> readCall(protocols::GuestChannel::ExecParams::Reader params) {
  Reading reading;
  ExecCall call;
  call.id = reading.id(params.getId());
  const auto request = params.getRequest();
  const auto argv = request.getArgv();
  if (argv.size() > MAX_ARGV) reading.fail(ArgumentError::TOO_MANY);
  for (const auto argument : argv) {
    if (reading.error) break;
    call.request.cmd.push_back(reading.text(argument));
  }
  if (request.hasCwd()) call.request.cwd = reading.text(request.getCwd());
  if (request.hasUser()) call.request.user = reading.text(request.getUser());
  readEnvironment(reading, request.getEnv(), call.request.env);
  call.request.budget = reading.budget(request.getBudget());
  if (params.hasStdin()) {
    call.request.dataSize = reading.number(request.getStdinSize(), ArgumentError::BULK_TOO_LARGE);
  }
  return reading.result(std::move(call));
}

Checked<ReadCall> readCall(protocols::GuestChannel::ReadFileParams::Reader params) {
  Reading reading;
  ReadCall call = readFileCall(reading, params);
  call.request.maxBytes = reading.number(params.getMaxBytes(), ArgumentError::BULK_TOO_LARGE);
  return reading.result(std::move(call));
}
Checked<ReadCall> readCall(protocols::GuestChannel::ReadJunitParams::Reader params) {
  Reading reading;
  ReadCall call = readFileCall(reading, params);
  return reading.result(std::move(call));
}
Checked<ReadCall> readCall(protocols::GuestChannel::ReadVerdictsParams::Reader params) {
  Reading reading;
  ReadCall call = readFileCall(reading, params);
  return reading.result(std::move(call));
}

Checked<WriteCall> readCall(protocols::GuestChannel::WriteFileParams::Reader params) {
  Reading reading;
  WriteCall call;
  call.id = reading.id(params.getId());
  call.request.path = reading.path(params.getPath());
  const auto mode = params.getMode();
  switch (mode.which()) {
    case protocols::FileMode::DEFAULT:
      break;
    case protocols::FileMode::BITS:
      call.request.mode = mode.getBits();
      break;
    default:
      reading.fail(ArgumentError::BAD_MODE);
  }
  call.request.dataSize = reading.number(params.getSize(), ArgumentError::BULK_TOO_LARGE);
  call.request.budget = reading.budget(params.getBudget());
  return reading.result(std::move(call));
}

Checked<PollCall> readCall(protocols::GuestChannel::PollParams::Reader params) {
  Reading reading;
  PollCall call{.id = reading.id(params.getId()),
                .target = reading.id(params.getTargetId()),
                .budget = reading.budget(params.getBudget())};
  return reading.result(call);
}

Checked<DiagCall> readCall(protocols::GuestChannel::DiagParams::Reader params) {
  Reading reading;
  DiagCall call{.id = reading.id(params.getId()),
                .maxEntries = params.getMaxEntries(),
                .budget = reading.budget(params.getBudget())};
  return reading.result(call);
}

Checked<CoveragePlan> readPlan(protocols::CoveragePoll::Reader request) {
  Reading reading;
  CoveragePlan plan;
  const auto sources = request.getSources();
  if (sources.size() == 0 || sources.size() > MAX_POLLED_SOURCES)
    reading.fail(ArgumentError::TOO_MANY);
  std::set<std::string> names;
  for (const auto source : sources) {
    if (reading.error) break;
    plan.sources.push_back(
        {.name = reading.text(source.getName()), .path = reading.path(source.getPath())});
    const std::string& name = plan.sources.back().name;
    if (name.empty() || name.size() > records::MAX_SOURCE_BYTES || !names.insert(name).second)
      reading.fail(ArgumentError::BAD_TEXT);
  }
  const auto duration = [&](std::uint32_t ms, std::uint32_t most) {
    if (ms < MIN_POLL_MS || ms > most) reading.fail(ArgumentError::BAD_BUDGET);
    return ms * kj::MILLISECONDS;
  };
  plan.interval = duration(request.getIntervalMs(), MAX_INTERVAL_MS);
  plan.silence = duration(request.getSilenceMs(), MAX_SILENCE_MS);
  plan.budget = reading.budget(request.getBudget());
  if (const auto error = checkBudget(plan.budget)) reading.fail(*error);
  return reading.result(std::move(plan));
}

std::optional<HybridAddress> readAddress(protocols::GuestAddress::Reader address,
                                         std::string_view socketsDirectory, bool allowRootPeer) {
  const std::uint32_t cid = address.getCid();
  if (cid < MIN_CID || cid > MAX_CID) return std::nullopt;
  HybridAddress result{.path = hybridPath(socketsDirectory, cid),
                       .uid = address.getUid(),
                       .port = address.getPort()};
  if (!isDialable(result, allowRootPeer)) return std::nullopt;
  return result;
}

}  // namespace cordon::parser
