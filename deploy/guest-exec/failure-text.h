// Words for what a parser answers, and a guest's bytes made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

#include "protocols/parser.capnp.h"

namespace cordon::deploy {

// "tamper(peerMismatch)", "loss(unreachable)", "budget(command)", "guest(ENOENT: no such file)", …:
// one line of printable ASCII, whatever the guest wrote.
std::string describe(protocols::Failure::Reader failure);

// Bytes as text for a terminal: line feeds, tabs and printable ASCII as they are, a backslash
// doubled, all else as \xNN.
std::string escapeForTerminal(std::string_view bytes);

}  // namespace cordon::deploy
