#include "services/parser/session-check.h"

namespace cordon::parser {
namespace {

bool isOfHost(const Failure& failure) {
  if (std::holds_alternative<LossClass>(failure.reason)) return true;
  const auto* budget = std::get_if<BudgetFailure>(&failure.reason);
  return budget != nullptr && budget->layer != channel::BudgetLayer::COMMAND;
}

bool isOfGuest(const Failure& failure) {
  return std::holds_alternative<GuestError>(failure.reason) ||
         std::holds_alternative<BudgetFailure>(failure.reason);
}

// An agent that restarted has forgotten the request and runs it again: another reply, and no
// tampering.
bool mayBeRestart(const Failure& failure) {
  const auto* tamper = std::get_if<Tamper>(&failure.reason);
  return tamper != nullptr && tamper->type == TamperClass::REPLAY_DIFFERS;
}

}  // namespace

SessionCheck checkFor(Operation operation, std::uint32_t deliveries, const Failure* failure) {
  if (!isDurable(operation)) return SessionCheck::NONE;
  const bool hasEffect = operation != Operation::READ_FILE;
  if (failure == nullptr)
    return hasEffect && deliveries > 1 ? SessionCheck::CERTIFY : SessionCheck::NONE;
  if (isOfHost(*failure) || mayBeRestart(*failure)) return SessionCheck::BEST_EFFORT;
  return hasEffect && deliveries > 1 && isOfGuest(*failure) ? SessionCheck::BEST_EFFORT
                                                            : SessionCheck::NONE;
}

}  // namespace cordon::parser
