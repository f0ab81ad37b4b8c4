// exec: runs a command and supervises it to its end. Source: protocols/channel.md §15.3.
#pragma once

#include <mutex>
#include <vector>

#include "common/channel/message.h"
#include "services/guest/cgroups.h"
#include "services/guest/diag-ring.h"
#include "services/guest/identity.h"
#include "services/guest/reply.h"
#include "services/guest/spawn.h"
#include "services/guest/spool.h"

namespace cordon::guest {

class Supervision;

inline constexpr std::size_t MAX_STREAM = 16u << 20;  // bytes kept of stdout, and of stderr
inline constexpr std::size_t PARTIAL_TAIL = 4096;  // bytes of the real stream in a time-out's reply

class Executor {
 public:
  Executor(DiagRing& ring, Identities& who, Inherited limits);

  // Runs the command and blocks until it ended, or its budget did and it was killed. Always a
  // reply: an exec_result (also for an unknown user: 1, an unknown command: 127, one that cannot be
  // executed: 126) or an error.
  ReplyPtr run(const channel::Id& id, const channel::Exec& request, const Spool& input);

 private:
  ReplyPtr start(const channel::Id& id, const channel::Exec& request, const Spool& input,
                 const Command& command);
  ReplyPtr conclude(const channel::Id& id, const channel::Exec& request, const Command& command,
                    Supervision& supervision);
  ReplyPtr timeOut(const channel::Id& id, std::int64_t budget, bool wholeCgroup,
                   Supervision& supervision);
  ReplyPtr result(const channel::Id& id, int rc, Supervision& supervision);
  ReplyPtr spawnFailure(const channel::Id& id, const Command& command, const SpawnReport& report);
  ReplyPtr plainResult(const channel::Id& id, int rc, std::string_view complaint);
  void reapLater(pid_t pid);
  void reapOverdue();

  DiagRing& diag;
  Identities& identities;
  Inherited inherited;
  Cgroups cgroups;
  std::mutex mutex;
  std::vector<pid_t> unreaped;  // killed, but stuck in the kernel when their reply was due
};

}  // namespace cordon::guest
