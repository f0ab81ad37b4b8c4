// cordon-guest: runs the host's commands in this guest. One connection, one request, one reply.

#include <array>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/channel/limits.h"
#include "services/guest/connection.h"
#include "services/guest/dispatcher.h"
#include "services/guest/exec.h"
#include "services/guest/files.h"
#include "services/guest/listener.h"
#include "services/guest/options.h"
#include "services/guest/workers.h"

namespace cordon::guest {
namespace {

// Descriptors 0 to 2 must exist: a pipe of a command that landed there would be overwritten in its
// child.
bool openStandardDescriptors() {
  int file = 0;
  do {
    file = ::open("/dev/null", O_RDWR);
  } while (file >= 0 && file <= 2);
  if (file < 0) return false;
  ::close(file);
  return true;
}

// Connections, pipes and pidfds of 512 commands at once need more than the usual soft limit.
void raiseOpenFiles(Inherited& inherited) {
  ::getrlimit(RLIMIT_NOFILE, &inherited.openFiles);
  rlimit raised = inherited.openFiles;
  raised.rlim_cur = raised.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

// A command that eats all memory should die of it, and not the agent that has to say so.
void avoidOomKiller(Inherited& inherited, DiagRing& diag) {
  if (::geteuid() != 0) return;
  Fd file(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  std::array<char, 16> score;
  ssize_t count = file.valid() ? ::pread(file.get(), score.data(), score.size(), 0) : -1;
  constexpr std::string_view WANTED = "-900";
  if (count <= 0 || ::pwrite(file.get(), WANTED.data(), WANTED.size(), 0) < 0) {
    diag.info("oom-score-unchanged", errnoText("/proc/self/oom_score_adj", errno));
    return;
  }
  inherited.oomScore.assign(score.data(), static_cast<std::size_t>(count));
}

// Small blocks from few heaps, large ones straight from the kernel and back: what is idle stays
// small.
void keepMemorySmall() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

class Agent {
 public:
  Agent(const Options& options, DiagRing& ring, Inherited inherited)
      : diag(ring),
        idleMs(options.idleTimeoutMs),
        identities(ring, UserDatabase()),
        executor(ring, identities, std::move(inherited)),
        dispatcher(ring, [this](const Request& request) { return perform(request); }) {}

  bool serve(Fd socket) {
    Connection connection(std::move(socket), diag, idleMs);
    auto request = connection.receive();
    if (!request) return true;
    Answer answer = dispatcher.answer(*request);
    connection.send(request->message.id, *answer.reply);
    return answer.threadUsable;
  }

 private:
  Answer perform(const Request& request) {
    const channel::Id& id = request.message.id;
    if (const auto* exec = std::get_if<channel::Exec>(&request.message.body)) {
      return {executor.run(id, *exec, request.bulk)};
    }
    Actor actor = identities.standard();
    if (const auto* read = std::get_if<channel::ReadFile>(&request.message.body)) {
      Spool content(Spool::IN_MEMORY);
      channel::FileData data;
      FileOutcome outcome = readFile(*read, actor, content, data.truncated);
      if (outcome.error != 0) return failed(id, outcome);
      data.size = static_cast<std::int64_t>(content.size());
      if (data.size > 0) data.dataSize = data.size;
      std::vector<Spool> bulk;
      bulk.push_back(std::move(content));
      return checked(id, outcome, makeReply(diag, id, data, std::move(bulk)));
    }
    const auto& write = std::get<channel::WriteFile>(request.message.body);
    FileOutcome outcome = writeFile(write, actor, request.bulk);
    if (outcome.error != 0) return failed(id, outcome);
    return checked(id, outcome, makeReply(diag, id, channel::Ok{}));
  }

  Answer failed(const channel::Id& id, const FileOutcome& outcome) {
    return checked(id, outcome, makeError(diag, id, errnoName(outcome.error), outcome.text));
  }

  Answer checked(const channel::Id& id, const FileOutcome& outcome, ReplyPtr reply) {
    if (!outcome.threadUsable) {
      diag.error("fs-identity-restore-failed", "the thread is retired", id);
    }
    return {std::move(reply), outcome.threadUsable};
  }

  DiagRing& diag;
  std::int64_t idleMs;
  Identities identities;
  Executor executor;
  Dispatcher dispatcher;
};

int serve(const Options& options) {
  if (!openStandardDescriptors()) {
    std::fputs("cordon-guest: cannot open /dev/null\n", stderr);
    return 1;
  }
  keepMemorySmall();
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(022);
  DiagRing diag;
  Inherited inherited;
  raiseOpenFiles(inherited);
  avoidOomKiller(inherited, diag);
  Agent agent(options, diag, std::move(inherited));
  Workers workers(diag, [&](Fd socket) { return agent.serve(std::move(socket)); });
  Listener listener(options.listen, diag, [&](Fd socket) { workers.submit(std::move(socket)); });
  listener.run();
}

int run(std::span<char* const> arguments) {
  auto parsed = parseOptions(arguments);
  if (auto* wrong = std::get_if<std::string>(&parsed)) {
    std::fprintf(stderr, "cordon-guest: %s\n%s", wrong->c_str(), USAGE);
    return 2;
  }
  const Options& options = std::get<Options>(parsed);
  if (!options.version) return serve(options);
  std::printf("cordon-guest " CORDON_VERSION " protocol %lld\n",
              static_cast<long long>(channel::PROTOCOL_VERSION));
  return 0;
}

}  // namespace
}  // namespace cordon::guest

int main(int argc, char** argv) {
  try {
    return cordon::guest::run({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)});
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "cordon-guest: %s\n", exception.what());
    return 1;
  }
}
