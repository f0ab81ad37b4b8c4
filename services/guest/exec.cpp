#include "services/guest/exec.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "common/channel/encoder.h"
#include "services/guest/clock.h"
#include "services/guest/supervision.h"

extern char** environ;

namespace cordon::guest {
namespace {

constexpr const char* ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* USER_PATH = "/usr/local/bin:/usr/bin:/bin";
// Beyond what a clock will ever reach, and far from overflow.
constexpr std::int64_t FOREVER_MS = std::int64_t{1} << 53;

struct Pipe {
  Fd ours;
  Fd childs;
};

// Our end does not block, the child's does: they are separate open file descriptions.
int makePipe(bool childReads, Pipe& made) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  made.ours = Fd(ends[childReads ? 1 : 0]);
  made.childs = Fd(ends[childReads ? 0 : 1]);
  return ::fcntl(made.ours.get(), F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

// The agent's own environment, what identity implies, what the request sets: the later wins, each
// name stands once.
std::map<std::string, std::string> environmentFor(const channel::Exec& request,
                                                  const Actor& actor) {
  std::map<std::string, std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    env.insert_or_assign(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  if (const auto& user = actor.user) {
    env["HOME"] = actor.home();
    env["SHELL"] = user->shell.empty() ? "/bin/sh" : user->shell;
    env["USER"] = user->name;
    env["LOGNAME"] = user->name;
    env["PATH"] = user->uid == 0 ? ROOT_PATH : USER_PATH;
  } else {
    env.try_emplace("PATH", USER_PATH);
  }
  for (const auto& [name, value] : request.env) env.insert_or_assign(name, value);
  return env;
}

std::int64_t budgetMs(const channel::Exec& request) {
  return request.budget.commandMs.value_or(request.budget.untimedBoundMs);
}

}  // namespace

Executor::Executor(DiagRing& ring, Identities& who, Inherited limits)
    : diag(ring), identities(who), inherited(std::move(limits)), cgroups(ring) {}

ReplyPtr Executor::run(const channel::Id& id, const channel::Exec& request, const Spool& input) {
  reapOverdue();
  for (const auto& [name, value] : request.env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return makeError(diag, id, "EIO", "the environment name '" + name + "' cannot be set");
    }
  }
  if (input.error() != 0) {
    return makeError(diag, id, errnoName(input.error()), errnoText("keeping stdin", input.error()));
  }
  auto actor = request.user ? identities.named(*request.user) : identities.standard();
  if (!actor) {
    return plainResult(id, 1,
                       "cannot run as user " + *request.user + ": no such user, or not permitted");
  }
  Command command{request.cmd, environmentFor(request, *actor), request.cwd, *actor};
  return start(id, request, input, command);
}

ReplyPtr Executor::start(const channel::Id& id, const channel::Exec& request, const Spool& input,
                         const Command& command) {
  Pipe in;
  Pipe out;
  Pipe err;
  int error = request.dataSize ? makePipe(true, in) : 0;
  if (error == 0 && !request.dataSize) {
    in.childs = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    // A guest without the device: a pipe that has ended reads the same.
    if (!in.childs.valid()) {
      error = makePipe(true, in);
      in.ours.reset();
    }
  }
  if (error == 0) error = makePipe(false, out);
  if (error == 0) error = makePipe(false, err);
  if (error != 0) return makeError(diag, id, errnoName(error), errnoText("making pipes", error));

  auto cgroup = cgroups.make();
  Fd procs = cgroup ? cgroup->openProcs() : Fd();
  std::int64_t deadline = nowMs() + std::min(budgetMs(request), FOREVER_MS);
  Child child;
  error = spawn(command, inherited,
                {std::move(in.childs), std::move(out.childs), std::move(err.childs)}, procs, child);
  if (error != 0) {
    if (cgroup) cgroups.release(std::move(*cgroup));
    return makeError(diag, id, errnoName(error), errnoText("starting a process", error));
  }
  std::optional<Fd> feed;
  if (in.ours.valid()) feed = std::move(in.ours);
  Supervision supervision(std::move(child), std::move(feed), input,
                          Capture(std::move(out.ours), MAX_STREAM, PARTIAL_TAIL),
                          Capture(std::move(err.ours), MAX_STREAM, PARTIAL_TAIL),
                          procs.valid() ? &*cgroup : nullptr, deadline);
  supervision.run();
  ReplyPtr reply = conclude(id, request, command, supervision);
  if (cgroup) cgroups.release(std::move(*cgroup));
  return reply;
}

ReplyPtr Executor::conclude(const channel::Id& id, const channel::Exec& request,
                            const Command& command, Supervision& supervision) {
  bool inCgroup = true;
  std::optional<SpawnReport> fatal;
  for (const SpawnReport& report : supervision.reports()) {
    if (report.step != SpawnStep::CGROUP) {
      fatal = report;
      continue;
    }
    inCgroup = false;
    diag.warn("cgroup-unavailable", errnoText("joining the command's cgroup", report.error), id);
  }
  int rc = 0;
  if (supervision.ended()) {
    rc = supervision.reap();
  } else {
    reapLater(supervision.pid());
  }
  if (supervision.timedOut()) {
    return timeOut(id, budgetMs(request), inCgroup && supervision.killedCgroup(), supervision);
  }
  if (fatal) return spawnFailure(id, command, *fatal);
  return result(id, rc, supervision);
}

ReplyPtr Executor::timeOut(const channel::Id& id, std::int64_t budget, bool wholeCgroup,
                           Supervision& supervision) {
  std::string scope =
      wholeCgroup ? "its cgroup was killed"
                  : "its process group was killed; a child in a session of its own may live on";
  std::string text = "the budget of " + std::to_string(budget) + " ms expired: " + scope;
  if (!supervision.ended()) text += "; the process is stuck in the kernel";
  diag.warn("exec-budget-killed", text, id);
  channel::Error error;
  error.errnoName = "ETIME";
  error.message = text;
  error.layer = channel::BudgetLayer::COMMAND;
  const std::string& tail = supervision.output().tail().empty() ? supervision.errors().tail()
                                                                : supervision.output().tail();
  std::string partial = channel::toWireText(tail, channel::MAX_PARTIAL_LENGTH);
  if (!partial.empty()) error.partial = std::move(partial);
  return makeReply(diag, id, std::move(error));
}

ReplyPtr Executor::result(const channel::Id& id, int rc, Supervision& supervision) {
  std::vector<Spool> bulk;
  channel::ExecResult body;
  body.rc = rc;
  for (Capture* capture : {&supervision.output(), &supervision.errors()}) {
    if (int error = capture->kept().error(); error != 0) {
      return makeError(diag, id, errnoName(error), errnoText("keeping output", error));
    }
  }
  body.stdoutSize = static_cast<std::int64_t>(supervision.output().kept().size());
  body.stderrSize = static_cast<std::int64_t>(supervision.errors().kept().size());
  body.stdoutTruncated = supervision.output().truncated();
  body.stderrTruncated = supervision.errors().truncated();
  if (body.stdoutSize + body.stderrSize > 0) {
    body.dataSize = body.stdoutSize + body.stderrSize;
    bulk.push_back(std::move(supervision.output().kept()));
    bulk.push_back(std::move(supervision.errors().kept()));
  }
  return makeReply(diag, id, body, std::move(bulk));
}

ReplyPtr Executor::spawnFailure(const channel::Id& id, const Command& command,
                                const SpawnReport& report) {
  std::string_view name = errnoName(report.error);
  switch (report.step) {
    case SpawnStep::CWD:
      return makeError(diag, id, name, errnoText("cwd " + command.cwd.value_or("/"), report.error));
    case SpawnStep::EXEC:
      break;
    case SpawnStep::IDENTITY:
      return makeError(diag, id, "EIO",
                       errnoText("becoming user " + command.actor.user->name, report.error));
    case SpawnStep::CGROUP:
    case SpawnStep::SETUP:
      return makeError(diag, id, name, errnoText("preparing the process", report.error));
  }
  const std::string& file = command.argv.front();
  switch (report.error) {
    case ENOENT:
    case ENOTDIR:
      return plainResult(id, 127, file + ": command not found");
    case EACCES:
    case EPERM:
      return plainResult(id, 126, file + ": permission denied");
    case ENOEXEC:
      return plainResult(id, 126, file + ": exec format error");
    default:
      return makeError(diag, id, name, errnoText("executing " + file, report.error));
  }
}

ReplyPtr Executor::plainResult(const channel::Id& id, int rc, std::string_view complaint) {
  std::string line = "cordon-guest: " + std::string(complaint) + "\n";
  std::vector<Spool> bulk;
  bulk.emplace_back(Spool::IN_MEMORY);
  bulk.back().append(std::as_bytes(std::span(line)));
  channel::ExecResult body;
  body.rc = rc;
  body.stderrSize = static_cast<std::int64_t>(line.size());
  body.dataSize = body.stderrSize;
  return makeReply(diag, id, body, std::move(bulk));
}

void Executor::reapLater(pid_t pid) {
  std::lock_guard lock(mutex);
  unreaped.push_back(pid);
}

void Executor::reapOverdue() {
  std::lock_guard lock(mutex);
  std::erase_if(unreaped, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace cordon::guest
