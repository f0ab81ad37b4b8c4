# What the driver may ask of a channel parser (`cordon-parser --role channel`).
#
# Direction of trust: the parser reads bytes that an attacker chooses and is presumed lost. Whoever calls it trusts
# nothing that comes back: every value here is bounded, and the caller checks the bounds again. Text that a guest wrote
# is `Data`: never formatted, never a path, never a shell word. The parser trusts its caller for the order of calls and
# for argument values only as far as the bounds below; over them a call ends with failure `argument`.
#
# Errors: a call returns a Failure for everything that can happen to a guest. An RPC exception means a broken contract
# or a lost parser and carries a code of common/ipc/error.h, never text of ours.
#
# Limits of a connection (common/ipc/limits.h): messages of 1 MiB, nesting 16, 256 calls in flight in each direction. At
# most 64 operations of all connections run at once; one more ends as failure argument(tooMany).

@0xb7a1cc2f4c0e5d19;

using Cxx = import "/capnp/c++.capnp";
using Records = import "/protocols/records.capnp";
$Cxx.namespace("cordon::protocols");

const bulkChunk :UInt32 = 262144;
# bytes: the largest piece of bulk in one call, in either direction

interface Parser {
  # The bootstrap capability of a connection.

  describe @0 () -> (facts :ParserFacts);

  openChannel @1 (guest :GuestAddress) -> (channel :GuestChannel);
  # Names a guest; nothing is dialled before the first operation. One channel may run many operations at once, each
  # over a connection of its own. At most 256 channels a parser.
}

struct ParserFacts {
  version @0 :Text;      # of cordon, at most 32 bytes
  role @1 :Text;         # "channel"
  policy @2 :Text;       # name of the seccomp policy it runs under
  policySha256 @3 :Data; # 32 bytes: SHA-256 of the loaded filter
  reader @4 :Records.ReaderFacts;
}

struct GuestAddress {
  cid @0 :UInt32;
  # 3..65535: the parser dials <its sockets directory>/<cid>/vsock.sock
  uid @1 :UInt32;
  # The uid that the plan gave to this guest's VMM: SO_PEERCRED of the dialled socket must equal it before a byte is
  # sent. 65534 is refused (an unmapped uid shows as that), 0 is refused but where the parser was started with
  # --allow-root-peer (tests).
  port @2 :UInt32 = 5000;
}

interface GuestChannel {
  # Every operation is one request of the guest channel (protocols/channel.md): delivered at most once to the guest's
  # effect, resent with the same id where its reply was lost. `id` is 16 bytes from the caller's random source, unique
  # per logical request, and joins the logs of driver, parser and guest.
  #
  # Dropping the call cancels it: the connection is closed at once. What the guest had begun goes on there until its own
  # budget ends it.

  ping @0 (id :Data, budget :Budget) -> (result :PingResult);
  # Only channelMs and untimedBoundMs of the budget count.

  pinSession @1 (id :Data, budget :Budget) -> (result :PingResult);
  # As ping, and remembers the session: from then on an operation that was delivered more than once is certified by a
  # fresh ping, and a changed session ends it as `sessionChanged` (after which the new one is pinned).

  exec @2 (id :Data, request :ExecRequest, stdin :ByteSource, stdout :ByteSink, stderr :ByteSink)
      -> (result :ExecResult);
  # A null stdin means none at all (the guest opens /dev/null); request.stdinSize counts only with one.
  # stdout and stderr arrive in order, stdout first, after the command ended in the guest.

  readFile @3 (id :Data, path :Text, maxBytes :UInt64, budget :Budget, content :ByteSink) -> (result :ReadResult);
  # path: 1..4096 bytes, no NUL; relative paths start at the guest user's home. maxBytes: 0..2^30; a longer file ends
  # as failure `fileLimit`, its first maxBytes bytes having been written to `content`.

  writeFile @4 (id :Data, path :Text, mode :FileMode, size :UInt64, budget :Budget, content :ByteSource)
      -> (result :WriteResult);
  # size: 0..268435456 (256 MiB), exactly what `content` yields.

  poll @5 (id :Data, targetId :Data, budget :Budget) -> (result :PollResult);
  # What became of an earlier exec, readFile or writeFile: for a caller that lost the answer. Bulk of a stored reply is
  # read, checked and dropped.

  diag @6 (id :Data, maxEntries :UInt16 = 100, budget :Budget) -> (result :DiagResult);
  # maxEntries: 1..1000

  readJunit @7 (id :Data, path :Text, budget :Budget, cases :Records.CaseSink) -> (result :JunitResult);
  # Reads a file of the guest, as readFile does, and hands on what is made of it instead of its bytes. At most 512 MiB;
  # a longer one is refused(tooManyBytes). A file that the guest does not have is `missing`, not a failure. At most 4
  # readings of records of all connections run at once; one more ends as failure argument(tooMany).

  readVerdicts @8 (id :Data, path :Text, budget :Budget, verdicts :Records.VerdictSink) -> (result :VerdictsResult);

  pollCoverage @9 (request :CoveragePoll) -> (poller :CoveragePoller);
  # Begins to ask the sources at once, a few of them at a time. A request out of its bounds gives a poller whose every
  # report is failure argument. At most 8 pollers a parser.
}

struct CoveragePoll {
  sources @0 :List(Source);  # 1..64
  intervalMs @1 :UInt32;     # 100..3600000: from the end of one round of questions to the next
  silenceMs @2 :UInt32;      # 100..86400000: a source that said nothing new for longer is silent
  budget @3 :Budget;         # of each question

  struct Source {
    name @0 :Text;  # as its watermarks must call it: 1..256 bytes, each once
    path @1 :Text;  # of the file to which the guest appends them, as in readFile; at most 16 MiB
  }
}

interface CoveragePoller {
  # Asks until it is dropped. What a source says may only be added to: a file that is not the earlier one with more lines
  # behind it makes the source contradictory (`rewritten`), and so does one that is no file of watermarks, is too long or
  # names another source; such a source is not asked again. A source that says `final` owes nothing more.
  #
  # What the host's clock adds: the source is incomplete where it was silent within the window (`silent`; without a window:
  # ever), or where it vouches there for a time that was not over yet when its word arrived, by more than silenceMs
  # (`aheadOfHost`). The guest's clock is taken for set by the host's.
  report @0 (window :Records.CoverageWindow) -> (result :CoverageResult);
  # Asks each source once more, then answers for the window.
}

interface ByteSink {
  # Takes bulk in order, in pieces of 1..bulkChunk bytes. What was written is unverified until the call that it belongs
  # to returns without a failure (`fileLimit` included): a receiver throws it away otherwise. A piece is written once,
  # however often the reply is sent again; a reply that differs from what was handed on already is tamper.
  write @0 (bytes :Data) -> stream;
  end @1 () -> ();
  # All is written; the call returns only after this one did.
}

interface ByteSource {
  read @0 (offset :UInt64, size :UInt32) -> (bytes :Data);
  # Exactly min(size, total - offset) bytes; size: 1..bulkChunk. May be asked again from 0 when the request is resent, and
  # must give the same bytes then.
}

struct Budget {
  # Milliseconds; 0 stands for "not given". All are enforced here by the host's monotonic clock, commandMs in the guest too.
  commandMs @0 :UInt64;      # 1..14400000: the command's own time, enforced in the guest by a kill
  channelMs @1 :UInt64;      # allowance of each round trip; default 180000
  untimedBoundMs @2 :UInt64; # the whole operation with its retries; default and maximum 14400000
}

struct ExecRequest {
  argv @0 :List(Text);   # 1..1024 elements; never a shell line
  cwd @1 :Text;          # null: the guest user's home
  env @2 :List(Entry);   # at most 1024, each name once
  user @3 :Text;         # null: the guest's default user
  budget @4 :Budget;
  stdinSize @5 :UInt64;  # 0..268435456

  struct Entry {
    name @0 :Text;
    value @1 :Text;
  }
  # All of it together must fit a control frame of 32768 bytes: over it, failure argument(requestTooLarge).
}

struct FileMode {
  union {
    default @0 :Void;  # 0644 less the guest's umask
    bits @1 :UInt16;   # exactly these, 0..0o7777
  }
}

struct PingResult {
  union {
    pong @0 :Pong;
    failure @1 :Failure;
  }
  struct Pong {
    daemon @0 :Data;   # at most 512 bytes
    session @1 :Data;  # 16 bytes
  }
}

struct ExecResult {
  union {
    finished @0 :Finished;
    failure @1 :Failure;
  }
  struct Finished {
    rc @0 :Int32;               # exit status; killed by signal N: -N
    stdoutSize @1 :UInt64;
    stderrSize @2 :UInt64;
    stdoutTruncated @3 :Bool;
    stderrTruncated @4 :Bool;
    stdoutSha256 @5 :Data;      # 32 bytes, of what was handed to the sinks
    stderrSha256 @6 :Data;
    deliveries @7 :UInt32;      # how often the request was really sent; 1 unless a reply was lost
  }
}

struct ReadResult {
  union {
    content @0 :Content;
    failure @1 :Failure;
  }
  struct Content {
    size @0 :UInt64;
    sha256 @1 :Data;
    deliveries @2 :UInt32;
  }
}

struct WriteResult {
  union {
    written @0 :Written;
    failure @1 :Failure;
  }
  struct Written {
    sha256 @0 :Data;  # of the bytes sent
    deliveries @1 :UInt32;
  }
}

struct PollResult {
  union {
    running @0 :UInt64;  # elapsed ms, as the guest says
    exec @1 :ExecResult.Finished;
    file @2 :UInt64;     # a stored readFile reply of this size
    ok @3 :Void;         # a stored writeFile reply
    failure @4 :Failure;
    # loss(unknownId): the guest does not know the id; loss(stale): it ran and its result is gone; else the error that the
    # request itself ended with
  }
}

struct DiagResult {
  union {
    report @0 :Report;
    failure @1 :Failure;
  }
  struct Report {
    entries @0 :List(Entry);  # at most 1000
    listenerRestarts @1 :UInt64;
  }
  struct Entry {
    tsMs @0 :UInt64;      # since the agent's start, by the guest's clock
    level @1 :Level;
    event @2 :Data;       # at most 512 bytes
    requestId @3 :Data;   # free text of the guest, at most 256 bytes
    detail @4 :Data;      # at most 8192 bytes
  }
  enum Level { info @0; warn @1; error @2; }
}

struct JunitResult {
  union {
    report @0 :Records.JunitReport;
    failure @1 :Failure;
  }
}

struct VerdictsResult {
  union {
    report @0 :Records.VerdictsReport;
    failure @1 :Failure;
  }
}

struct CoverageResult {
  union {
    report @0 :Report;
    failure @1 :Failure;
    # of the request itself; what one source could not be asked is told of that source
  }
  struct Report {
    coverage @0 :Records.CoverageReport;
    polled @1 :List(Polled);  # of each source of the request, in its order
  }
  struct Polled {
    asked @0 :UInt32;     # questions
    answered @1 :UInt32;  # of them
    lastFailure @2 :Failure;
    # of the newest question that failed; null where none did. Texts in it are cut to 1024 bytes.
    firstAnswerMs @3 :Int64;  # all three by the host's clock, since the epoch; 0 where there is none
    lastNewsMs @4 :Int64;     # when a watermark that was not known yet arrived last
    longestSilenceMs @5 :UInt64;
    silent @6 :Bool;          # longestSilenceMs is over silenceMs
  }
}

enum BudgetLayer {
  command @0;    # the guest killed the command, or was still alive when its time was up
  channel @1;    # nothing came in a round trip's allowance
  untimed @2;    # the operation's total is used up
  transport @3;  # reserved: never produced here
}

struct Failure {
  deliveries @0 :UInt32;
  union {
    tamper @1 :Tamper;
    # A reply that no correct guest sends. Never retried, never to be read as "unavailable".
    loss @2 :LossClass;
    # Could not be completed within the retries, or must not be resent.
    budget @3 :BudgetFailure;
    guest @4 :GuestError;
    fileLimit @5 :UInt64;
    # The file is longer than maxBytes; so many bytes were written to the sink.
    sessionChanged @6 :SessionChange;
    argument @7 :ArgumentError;
    # Refused here, before anything was sent.
    stream @8 :StreamError;
    # The caller's ByteSource or ByteSink failed or broke its contract; the guest is not to blame.
  }
}

struct Tamper {
  class @0 :TamperClass;
  frame @1 :Data;  # 32 bytes: SHA-256 of the offending frame or bytes; empty where there is none (peerMismatch)
}

enum TamperClass {
  frameTooLarge @0;
  protocolViolation @1;
  invalidMessage @2;
  bulkOverrun @3;
  bulkMismatch @4;
  wrongId @5;
  wrongKind @6;
  trailingData @7;      # bytes behind the reply
  peerMismatch @8;      # SO_PEERCRED is not the planned uid
  handshake @9;         # the hybrid socket answered CONNECT with something else than OK <port>
  foreignLayer @10;     # ETIME with a layer other than `command`
  replayDiffers @11;    # a reply sent again is not the reply sent before
}

enum LossClass {
  unreachable @0;   # never left: each dial failed
  replyLost @1;     # all attempts used
  stale @2;         # ESTALE: it ran, its result is gone; never resend
  unknownId @3;     # ENOENT to a poll: delivery cannot be ruled out, so it is not resent
  uncertified @4;   # it succeeded after a resend, but the guest did not answer the session check
}

struct BudgetFailure {
  layer @0 :BudgetLayer;
  partial @1 :Data;  # tail of the killed command's output, at most 16384 bytes; empty but for layer `command`
}

struct GuestError {
  errno @0 :Text;    # ^[A-Z][A-Z0-9]{1,15}$
  message @1 :Data;  # at most 16384 bytes, of the guest's choosing
}

struct SessionChange {
  pinned @0 :Data;  # 16 bytes
  found @1 :Data;   # 16 bytes, pinned from now on
}

enum ArgumentError {
  badId @0;
  badText @1;          # NUL, not UTF-8, empty where it must not be, over its length
  badBudget @2;
  badAddress @3;
  requestTooLarge @4;  # the control frame would exceed 32768 bytes
  bulkTooLarge @5;
  badMode @6;
  tooMany @7;          # operations, channels, pollers, sources, argv or env entries
  badWindow @8;        # empty or inverted
}

enum StreamError {
  sourceShort @0;    # fewer or more bytes than asked for
  sourceChanged @1;  # other bytes when asked again
  failed @2;         # the capability threw or was lost
}
