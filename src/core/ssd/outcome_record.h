#pragma once

#include <span>

#include "core/ssd/messages.h"

namespace foretoken {

/// Writes what was committed and what is verified next into `message`. Where that is part of
/// `prepared`, the branch that was taken (null: none was), only which part.
void Pack(std::span<const Token> committed, const Proposal& next, const Proposal* prepared,
          OutcomeMessage* message);

/// The record as a message; null where it is none or makes no sense.
const OutcomeMessage* OutcomeOf(std::span<const std::byte> record);

/// The committed tokens: the accepted ones, then the bonus token.
StaticVector<Token, kMaxProposal + 1> CommittedOf(const OutcomeMessage& message);

/// What is verified next; `prepared` is the branch for the outcome where there is one.
Proposal NextOf(const OutcomeMessage& message, const Proposal* prepared);

}  // namespace foretoken
