// cordon: what an operator and an evaluator type.
#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <kj/exception.h>

#include "common/log/visible.h"
#include "services/cli/command.h"

namespace cordon::cli {
namespace {

int fail(const std::string& text) {
  std::fprintf(stderr, "cordon: %s\n", log::visible(text).c_str());
  return NOT_GOOD;
}

// A standard stream that is closed would become the next file that we open.
bool holdStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // The lowest number that is free: those below are open by now.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) != fd) return false;
  }
  return true;
}

int parse(CLI::App& app, Run& run, int argc, char** argv) {
  app.require_subcommand(1);
  app.set_version_flag("--version", "cordon " CORDON_VERSION);
  for (const Command& command : commands()) command.declare(app, run);
  try {
    app.parse(argc, argv);
    return GOOD;
  } catch (const CLI::CallForHelp&) {
    return print(app.help()) ? GOOD : NOT_GOOD;
  } catch (const CLI::CallForVersion& version) {
    return print(std::string(version.what()) + '\n') ? GOOD : NOT_GOOD;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "cordon: %s\nSee cordon --help, or --help behind a command.\n",
                 log::visible(error.what()).c_str());
    return USAGE;
  }
}

}  // namespace
}  // namespace cordon::cli

int main(int argc, char** argv) {
  using namespace cordon::cli;
  // A reader that went away is an error of write(), which is told.
  std::signal(SIGPIPE, SIG_IGN);
  if (!holdStandardStreams()) return NOT_GOOD;
  try {
    CLI::App app("Runs untrusted agents against cyber ranges, and shows what became of it.",
                 "cordon");
    Run run;
    const int code = parse(app, run, argc, argv);
    return run ? run() : code;
  } catch (const kj::Exception& error) {
    return fail(error.getDescription().cStr());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
