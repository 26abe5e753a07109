#include "core/ssd/outcome_record.h"

#include <array>

namespace foretoken {
namespace {

// A bit for each node of `whole` that is in `part`; none where `part` is not made of its nodes, in
// their order. Siblings carry different tokens, so there is one way at most.
std::optional<std::uint64_t> NodesIn(const Proposal& whole, const Proposal& part) {
  std::uint64_t nodes = 0;
  std::array<std::int8_t, kMaxProposal + 1> number;  // In `part`.
  number[0] = 0;
  int next = 0;
  for (int i = 0; i < whole.size() && next < part.size(); ++i) {
    number[i + 1] = -1;
    const std::int8_t parent = number[whole.parents[i]];
    if (parent != part.parents[next] || whole.tokens[i] != part.tokens[next]) continue;
    number[i + 1] = static_cast<std::int8_t>(++next);
    nodes |= std::uint64_t{1} << i;
  }
  if (next < part.size()) return std::nullopt;
  return nodes;
}

}  // namespace

void Pack(std::span<const Token> committed, const Proposal& next, const Proposal* prepared,
          OutcomeMessage* message) {
  const auto kept = prepared == nullptr ? std::nullopt : NodesIn(*prepared, next);
  message->taken = kept.has_value();
  message->kept = kept.value_or(0);
  message->source = next.source;
  message->committed = static_cast<std::uint8_t>(committed.size());
  message->list.clear();
  for (const Token token : committed) message->list.push_back({.token = token});
  for (int i = 0; i < next.size() && !message->taken; ++i) {
    message->list.push_back({.token = next.tokens[i], .parent = next.parents[i]});
  }
}

const OutcomeMessage* OutcomeOf(std::span<const std::byte> record) {
  const auto* message = As<OutcomeMessage>(record);
  if (message == nullptr || message->committed == 0 || message->committed > kMaxProposal + 1 ||
      message->proposed() < 0 || message->proposed() > kMaxProposal) {
    return nullptr;
  }
  for (int i = 0; i < message->proposed(); ++i) {
    const std::int8_t parent = message->list[message->committed + i].parent;
    if (parent < 0 || parent > i) return nullptr;
  }
  return message;
}

StaticVector<Token, kMaxProposal + 1> CommittedOf(const OutcomeMessage& message) {
  StaticVector<Token, kMaxProposal + 1> committed;
  for (int i = 0; i < message.committed; ++i) committed.push_back(message.list[i].token);
  return committed;
}

Proposal NextOf(const OutcomeMessage& message, const Proposal* prepared) {
  Proposal next;
  if (message.taken) {
    if (prepared != nullptr) next = *prepared;
    next.KeepIf([&](int node, int) { return (message.kept >> (node - 1) & 1) != 0; });
  } else {
    for (int i = 0; i < message.proposed(); ++i) {
      const OutcomeMessage::Entry& entry = message.list[message.committed + i];
      next.Append(entry.parent, entry.token);
    }
  }
  next.source = message.source;
  return next;
}

}  // namespace foretoken
