# What the parser makes of the files that a guest leaves as its own account of what happened: JUnit reports, verdict
# records, coverage watermarks.
#
# Direction of trust: as in parser.capnp. The reader of such a file is presumed lost; who receives these values checks
# every bound again, and takes every Data for bytes of an attacker's choosing. All of it is tier T3, whatever it says.
#
# Lists that may be long are written to a sink of the caller's, in pieces; what was written is to be thrown away unless
# the call that it belongs to returns with status `ok`.

@0xc3d5a7f01b6e4d82;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("cordon::protocols");

const maxListedCases :UInt32 = 10000;
const maxListedVerdicts :UInt32 = 10000;
const maxListBytes :UInt32 = 8388608;
# bytes of all names and texts of one list: 8 MiB. Over either bound a list stops, and the report says `truncated`.
const maxSources :UInt32 = 1024;
const maxGaps :UInt32 = 4096;
# of all sources of one report
const maxSourceName :UInt32 = 256;
# bytes

enum RecordStatus {
  ok @0;
  empty @1;
  missing @2;
  unparsable @3;
  refused @4;
}

enum RecordReason {
  none @0;
  notWellFormed @1;
  notUtf8 @2;
  illegalCharacter @3;
  illegalReference @4;
  secondRoot @5;
  noRoot @6;
  doctype @7;
  encoding @8;
  xmlVersion @9;
  foreignRoot @10;
  tooDeep @11;
  tooManyBytes @12;
  tooManyElements @13;
  tooManyAttributes @14;
  tooManyNamespaces @15;
  tooManyNames @16;
  tooManyCases @17;
  tokenTooLong @18;
  outOfMemory @19;
  outOfTime @20;
  notJson @21;
  byteOrderMark @22;
  nulByte @23;
  carriageReturn @24;
  duplicateKey @25;
  notInteger @26;
  integerRange @27;
  unknownKey @28;
  missingKey @29;
  wrongType @30;
  wrongValue @31;
  controlCharacter @32;
  lineTooLong @33;
  tooManyLines @34;
  textTooLong @35;
  tooManySources @36;
  notRegular @37;
  notReadable @38;
  readerLost @39;
}

enum RecordFinding {
  namelessCase @0;
  nestedCase @1;
  resultOutsideCase @2;
  resultInOutput @3;
  foreignContent @4;
  foreignResult @5;
  badClaim @6;
  claimMismatch @7;
  contradictoryResults @8;
  repeatedCase @9;
  unknownStatus @10;
  tornTail @11;
  sequenceGap @12;
  sequenceRepeated @13;
  sequenceBackward @14;
  foreignRun @15;
  hole @16;
  missingSequence @17;
  droppedEvents @18;
  restarted @19;
  startedLate @20;
  backlogLeft @21;
  beyondRecords @22;
  overlappingWindows @23;
  invertedWindow @24;
  eventsWithoutWindow @25;
  epochBackward @26;
  startMoved @27;
  afterFinal @28;
  clockStep @29;
  silent @30;
  rewritten @31;
  aheadOfHost @32;
}

# ---- JUnit ----

struct JunitReport {
  status @0 :RecordStatus;
  reason @1 :RecordReason;
  offset @2 :UInt64;  # bytes before the violation, where there is a reason
  cases @3 :UInt64;   # merged by (suite path, class, name); the six below add up to it
  passed @4 :UInt64;
  failed @5 :UInt64;
  errored @6 :UInt64;
  skipped @7 :UInt64;
  flaky @8 :UInt64;
  unknown @9 :UInt64;
  green @10 :Bool;
  claimsMismatch @11 :Bool;
  findings @12 :List(RecordFinding);  # each at most once
  truncated @13 :Bool;                # the list stops before its end, or text in it was cut
  listed @14 :UInt32;                 # cases written to the sink
  foreignElements @15 :UInt64;
  unknownElements @16 :UInt64;
}

struct JunitCase {
  suite @0 :List(Data);  # outer to inner, at most 64
  className @1 :Data;
  name @2 :Data;
  outcome @3 :CaseOutcome;
  attempts @4 :UInt64;
  text @5 :Data;        # at most 65536 bytes together with the names
  truncated @6 :Bool;   # something of it was cut
  textBytes @7 :UInt64; # of all its text
  textSha256 @8 :Data;  # 32 bytes where truncated: of all its text
}

enum CaseOutcome {
  passed @0;
  skipped @1;
  flaky @2;
  unknown @3;
  failed @4;
  errored @5;
}

interface CaseSink {
  write @0 (cases :List(JunitCase)) -> stream;
  # 1..256 cases, at most 512 KiB in all
  end @1 () -> ();
}

# ---- verdict records ----

struct VerdictsReport {
  status @0 :RecordStatus;
  reason @1 :RecordReason;
  line @2 :UInt64;     # of the violation, from 1
  run @3 :Data;        # 16 bytes, of the first record
  records @4 :UInt64;  # the four below add up to it
  passed @5 :UInt64;
  failed @6 :UInt64;
  errored @7 :UInt64;
  skipped @8 :UInt64;
  tamper @9 :Bool;
  green @10 :Bool;
  findings @11 :List(RecordFinding);
  truncated @12 :Bool;
  listed @13 :UInt32;  # records written to the sink
}

struct VerdictRecord {
  seq @0 :UInt64;    # 1..2^53-1
  check @1 :Data;    # together with goal and detail at most 65536 bytes
  goal @2 :Data;
  hasGoal @3 :Bool;
  outcome @4 :VerdictOutcome;
  observedMs @5 :Int64;   # by the producer's clock
  proofKind @6 :Data;     # ^[a-z0-9-]{1,32}$; empty: no proof
  proofSha256 @7 :Data;   # 32 bytes where there is a proof
  detail @8 :Data;        # at most 16384 bytes, control characters included
  hasDetail @9 :Bool;
}

enum VerdictOutcome {
  pass @0;
  fail @1;
  error @2;
  skip @3;
}

interface VerdictSink {
  write @0 (records :List(VerdictRecord)) -> stream;
  # 1..256 records, at most 512 KiB in all
  end @1 () -> ();
}

# ---- coverage ----

struct CoverageWindow {
  # Half-open, in milliseconds of the sources' clock; fromMs < toMs.
  union {
    whole @0 :Void;  # from the first record to the last
    bounds :group {
      fromMs @1 :Int64;
      toMs @2 :Int64;
    }
  }
}

enum CoverageAnswer {
  complete @0;
  incomplete @1;
  contradictory @2;
}

struct CoverageReport {
  status @0 :RecordStatus;
  reason @1 :RecordReason;
  line @2 :UInt64;
  answer @3 :CoverageAnswer;  # the worst of all sources
  sources @4 :List(Source);   # at most maxSources
  findings @5 :List(RecordFinding);
  truncated @6 :Bool;         # gaps stop before their end

  struct Source {
    source @0 :Data;  # at most maxSourceName bytes
    answer @1 :CoverageAnswer;
    gaps @2 :List(Gap);
    dropped @3 :UInt64;
    restarts @4 :UInt64;
  }
  struct Gap {
    fromMs @0 :Int64;
    toMs @1 :Int64;
    why @2 :RecordFinding;
  }
}

# ---- one file of an operator's ----

interface RecordFile {
  # The bootstrap of `cordon-parser --role read`: the one file whose descriptor it was given. One read, then it ends.
  describe @0 () -> (facts :ReaderFacts);
  readJunit @1 (cases :CaseSink) -> (report :JunitReport);
  readVerdicts @2 (verdicts :VerdictSink) -> (report :VerdictsReport);
  readCoverage @3 (window :CoverageWindow) -> (report :CoverageReport);
}

struct ReaderFacts {
  expatVersion @0 :Text;           # at most 32 bytes
  expatAllocationTracker @1 :Bool; # whether the loaded expat bounds its own amplification (XML_GetFeatureList)
}
