// What a hostile guest may do, by name, each with the one verdict that it must get.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/scripted-guest.h"

namespace cordon::tests {

enum class Driver : std::uint8_t { PING, EXEC, READ, WRITE, POLL, DIAG };

struct Behaviour {
  std::string name;
  // The operation it answers: ping; exec of `true`; read of at most 65536 bytes; write of 5 bytes;
  // poll of VirtualClient::TARGET; diag of at most 10 entries.
  Driver driver = Driver::READ;
  Script script;
  std::string verdict;  // of verdictOf(): what, and after how many deliveries
  DialScript dial = nullptr;
};

// Frames, their order and their sizes; bulk and its END; what comes late, slowly or never.
std::vector<Behaviour> framingBehaviours();
// Control payloads that are no message.
std::vector<Behaviour> payloadBehaviours();
// Legal messages that are lies.
std::vector<Behaviour> conversationBehaviours();
std::vector<Behaviour> allBehaviours();

// The whole honest reply to what a driver asks under this id.
std::string honestReply(Driver driver, const channel::Id& id);

}  // namespace cordon::tests
