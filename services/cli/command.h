// What `cordon` can do, as a table: a subcommand is one file and one line in it (commands.cpp).
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>

namespace cordon::cli {

// Exit codes of every subcommand.
inline constexpr int GOOD = 0;
inline constexpr int NOT_GOOD = 1;  // asked and answered, and the answer is not good; or no answer
inline constexpr int USAGE = 2;

// Does the work once the command line is understood; returns an exit code.
using Run = std::function<int()>;

struct Command {
  // Adds its subcommand to `app`, and sets `run` where the command line names it.
  void (*declare)(CLI::App& app, Run& run);
};

std::span<const Command> commands();

// `text` on standard output, all of it; says on standard error why not, and returns false then.
bool print(std::string_view text);

}  // namespace cordon::cli
