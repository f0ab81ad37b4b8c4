#include "services/cli/read/read-command.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <system_error>
#include <unistd.h>
#include <variant>

#include <kj/exception.h>

#include "common/log/visible.h"
#include "services/cli/read/conversation.h"
#include "services/cli/read/file.h"
#include "services/cli/read/human-view.h"
#include "services/cli/read/json-view.h"
#include "services/cli/read/reader-process.h"

namespace cordon::cli {
namespace {

using records::Reason;
using records::Status;

// For a whole answer. The parser's own limit of processor time comes first, except where the disk
// is slow or the parser waits for nothing.
constexpr kj::Duration PATIENCE = 15 * kj::MINUTES;
constexpr std::int64_t MAX_INTEGER = (std::int64_t{1} << 53) - 1;

// What differs between the three kinds of file.
struct Junit {
  using Report = records::JunitReport;
  static constexpr const char* NAME = "junit";
  static constexpr const char* ABOUT = "a JUnit XML report: green or not, and why";
  static Answer<Report> ask(Conversation& parser, const ReadOptions&) { return parser.askJunit(); }
  static bool isGood(const Report& report) { return report.green; }
};

struct Verdicts {
  using Report = records::VerdictsReport;
  static constexpr const char* NAME = "verdicts";
  static constexpr const char* ABOUT = "verdict records (JSON Lines): green or not, and why";
  static Answer<Report> ask(Conversation& parser, const ReadOptions&) {
    return parser.askVerdicts();
  }
  static bool isGood(const Report& report) { return report.green; }
};

struct Coverage {
  using Report = records::CoverageReport;
  static constexpr const char* NAME = "coverage";
  static constexpr const char* ABOUT =
      "coverage watermarks (JSON Lines): whether a window was watched";
  static Answer<Report> ask(Conversation& parser, const ReadOptions& options) {
    return parser.askCoverage(options.window);
  }
  static bool isGood(const Report& report) { return report.answer == records::Coverage::COMPLETE; }
};

void explain(const std::string& text) {
  std::fprintf(stderr, "cordon: %s\n", text.c_str());
}

// The report of a file that nobody read.
template <typename Report>
Report unread(Status status, Reason reason) {
  Report report;
  report.status = status;
  report.reason = reason;
  if constexpr (std::is_same_v<Report, records::CoverageReport>) {
    report.answer = status == Status::REFUSED ? records::Coverage::CONTRADICTORY
                                              : records::Coverage::INCOMPLETE;
  }
  return report;
}

// The parser's log is of use only where it failed us; by then it may be an attacker's words.
void explainLoss(const NoAnswer& missing, const ReaderEnd& end, const std::string& log) {
  std::string text = "the sandboxed reader ";
  switch (missing.why) {
    case NoAnswer::Why::BREACH:
      text += "broke its contract: " + missing.detail;
      break;
    case NoAnswer::Why::SILENT:
      text += "gave no answer in time";
      break;
    case NoAnswer::Why::LOST:
      text += "was lost (" + missing.detail + ')';
      break;
  }
  if (end.signal != 0) {
    text += "; killed by signal " + std::to_string(end.signal);
  } else {
    text += "; it exited with " + std::to_string(end.code);
  }
  explain(text);
  constexpr std::size_t MAX_LINES = 10;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < MAX_LINES && begin < log.size(); ++i) {
    const std::size_t feed = std::min(log.find('\n', begin), log.size());
    explain("its log: " + log::visible(std::string_view(log).substr(begin, feed - begin)));
    begin = feed + 1;
  }
}

template <typename Kind>
typename Kind::Report askParser(kj::AutoCloseFd file, const ReadOptions& options) {
  using Report = typename Kind::Report;
  const std::string parser = findParser();
  if (parser.empty()) {
    explain("cordon-parser is neither beside this program nor installed; install the package");
    return unread<Report>(Status::REFUSED, Reason::READER_LOST);
  }
  auto started = ReaderProcess::start(parser, kj::mv(file));
  if (const auto* failure = std::get_if<StartFailure>(&started)) {
    explain(describe(*failure));
    return unread<Report>(Status::REFUSED, Reason::READER_LOST);
  }
  auto& process = *std::get<std::unique_ptr<ReaderProcess>>(started);
  Answer<Report> answer = NoAnswer{};
  {
    Conversation conversation(process.takeSocket(), PATIENCE);
    answer = Kind::ask(conversation, options);
  }
  const ReaderEnd end = process.end();
  if (auto* report = std::get_if<Report>(&answer)) return std::move(*report);
  const auto& missing = std::get<NoAnswer>(answer);
  explainLoss(missing, end, process.log());
  const bool isLate = end.outOfTime || missing.why == NoAnswer::Why::SILENT;
  return unread<Report>(Status::REFUSED, isLate ? Reason::OUT_OF_TIME : Reason::READER_LOST);
}

// Whatever fails here is told, and is no reason to say nothing.
template <typename Kind>
typename Kind::Report askReader(kj::AutoCloseFd file, const ReadOptions& options) {
  try {
    return askParser<Kind>(kj::mv(file), options);
  } catch (const kj::Exception& error) {
    explain(log::visible(error.getDescription().cStr()));
  } catch (const std::exception& error) {
    explain(log::visible(error.what()));
  }
  return unread<typename Kind::Report>(Status::REFUSED, Reason::READER_LOST);
}

bool wantsColour() {
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

template <typename Kind>
int read(const ReadOptions& options) {
  auto opened = openFile(options.file);
  typename Kind::Report report;
  if (const auto* none = std::get_if<Unread>(&opened)) {
    report = unread<typename Kind::Report>(none->status, none->reason);
  } else {
    report = askReader<Kind>(std::get<kj::AutoCloseFd>(kj::mv(opened)), options);
  }
  const bool isPrinted =
      print(options.json ? toJson(report) : toText(options.file, report, ViewStyle{wantsColour()}));
  return isPrinted && Kind::isGood(report) ? GOOD : NOT_GOOD;
}

template <typename Kind>
CLI::App* declareKind(CLI::App& read, Run& run, const std::shared_ptr<ReadOptions>& options) {
  CLI::App* kind = read.add_subcommand(Kind::NAME, Kind::ABOUT);
  kind->add_option("FILE", options->file, "the file; standard input is not read")
      ->required()
      ->check([](const std::string& path) {
        return path.empty() || path == "-" ? std::string("name a file") : std::string();
      });
  kind->add_flag("--json", options->json, "print one JSON object instead of text");
  kind->callback([&run, options]() { run = [options]() { return cli::read<Kind>(*options); }; });
  return kind;
}

}  // namespace

std::optional<records::Window> parseWindow(const std::string& text) {
  const char* const end = text.data() + text.size();
  records::Window window;
  const auto from = std::from_chars(text.data(), end, window.fromMs);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != ',') return std::nullopt;
  const auto to = std::from_chars(from.ptr + 1, end, window.toMs);
  if (to.ec != std::errc() || to.ptr != end) return std::nullopt;
  if (window.fromMs < -MAX_INTEGER || window.toMs > MAX_INTEGER) return std::nullopt;
  if (window.fromMs >= window.toMs) return std::nullopt;
  return window;
}

void declareRead(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand(
      "read", "show what cordon makes of a file that a guest wrote (reads it in a sandbox)");
  command->require_subcommand(1);
  command->footer(
      "Exits with 0 only where the file is green (coverage: complete), 1 otherwise, 2 where the "
      "command line is wrong.");
  auto options = std::make_shared<ReadOptions>();
  declareKind<Junit>(*command, run, options);
  declareKind<Verdicts>(*command, run, options);
  CLI::App* coverage = declareKind<Coverage>(*command, run, options);
  auto window = [options](const std::string& text) {
    options->window = parseWindow(text);
    if (!options->window) {
      throw CLI::ValidationError("--window", "FROM,TO in whole milliseconds, FROM before TO");
    }
  };
  coverage
      ->add_option_function<std::string>(
          "--window", window,
          "the window in question, in ms of the sources' clocks; default: from the first record "
          "to the last")
      ->type_name("FROM,TO");
}

}  // namespace cordon::cli
