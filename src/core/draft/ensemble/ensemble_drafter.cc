#include "core/draft/ensemble/ensemble_drafter.h"

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"

namespace foretoken {
namespace {

// A row costs some part of a token even where it is cheap: levels that are reached less often are
// not asked for.
constexpr double kLeastReached = 0.05;
// Nor where even the cheapest row costs more; what others propose too may be likelier than that.
constexpr double kAgreeing = 0.5;
// Where a member is not worth asking, it is asked in one round of so many, for so many levels.
constexpr int kRoundsBetween = 24;
constexpr int kTriedLevels = 2;
// Trees have several nodes at a level.
constexpr int kNodesOfLevel = 4;
constexpr double kKeepTime = 0.95;
// What a member was worth of late, and how many of the other sequences' asks count beside one's
// own.
constexpr double kKeepWorth = 0.98;
constexpr double kWorthOfOthers = 16;

bool ProposesTrees(DrafterId id) { return Retrieves({Schedule::kBefore, id}); }

}  // namespace

EnsembleDrafter::EnsembleDrafter(std::vector<EnsembleMember> members, int max_sequences,
                                 std::optional<double> level_price)
    : level_price_(level_price), slots_(max_sequences) {
  for (EnsembleMember& member : members) members_.push_back({std::move(member)});
  slots_.ForAll([this](Slot& slot) {
    slot.members.resize(members_.size());
    slot.merge = PathMerge(members_.size());
  });
  asked_.reserve(slots_.size());
}

void EnsembleDrafter::Forget(SequenceId sequence) {
  slots_.Forget(sequence, [](Slot& slot) {
    slot.tokens = 0;
    std::ranges::fill(slot.members, OfMember{});
    slot.merge.Clear();
    slot.agreements = {};
  });
  for (Member& member : members_) member.drafter->Forget(sequence);
}

void EnsembleDrafter::Remember(const EndedText& text) {
  for (Member& member : members_) member.drafter->Remember(text);
}

void EnsembleDrafter::Observe(const VerifiedProposal& verified) {
  for (Member& member : members_) member.drafter->Observe(verified);
}

void EnsembleDrafter::SettleSequence(const DraftContext& context, Slot* slot) {
  const auto text = context.tokens.subspan(std::min(slot->tokens, context.tokens.size()));
  PathMerge::Credits credits{};
  if (slot->tokens > 0) credits = slot->merge.Compare(text, &agreements_, &slot->agreements);
  slot->merge.Clear();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    OfMember& of_member = slot->members[i];
    if (of_member.asked) {
      const int tokens = credits[std::min(i, credits.size() - 1)];
      for (DecayingSum* worth : {&members_[i].worth, &of_member.worth}) {
        worth->Decay(kKeepWorth);
        worth->Add(tokens);
      }
      of_member.asked = false;
    }
    const Proposal& proposal = of_member.proposal;
    int node = 0;
    for (std::size_t t = 0; t < text.size() && slot->tokens > 0; ++t) {
      const int children = proposal.Children(node);
      if (children == 0) break;
      int rank = -1;
      int next = 0;
      for (int child = node + 1; child <= proposal.size() && next == 0; ++child) {
        if (proposal.parents[child - 1] != node) continue;
        ++rank;
        if (proposal.tokens[child - 1] == text[t]) next = child;
      }
      const int right = next == 0 ? -1 : rank;
      members_[i].record.Add(Int(t) + 1, children, right);
      of_member.record.Add(Int(t) + 1, children, right);
      if (next == 0) break;
      node = next;
    }
    of_member.proposal.Clear();
  }
}

void EnsembleDrafter::Settle(std::span<DraftContext> contexts) {
  const std::int64_t now = NowNs();
  double tokens = 0;
  for (const DraftContext& context : contexts) {
    Slot& slot = slots_.For(context.sequence);
    if (slot.tokens > 0 && slot.round == round_) {
      tokens += static_cast<double>(context.tokens.size() - slot.tokens);
    }
    SettleSequence(context, &slot);
    slot.tokens = context.tokens.size();
    slot.round = round_ + 1;
  }
  if (tokens > 0) {
    tokens_.Decay(kKeepTime);
    tokens_.Add(tokens);
    ns_.Decay(kKeepTime);
    ns_.Add(static_cast<double>(now - round_began_ns_));
  }
  ++round_;
  round_began_ns_ = now;
}

double EnsembleDrafter::PriceOf(const Member& member) const {
  if (level_price_.has_value()) return *level_price_;
  if (member.level_ns.weight == 0 || ns_.sum <= 0) return 0;
  return member.level_ns.sum / member.level_ns.weight * tokens_.sum / ns_.sum;
}

int EnsembleDrafter::LevelsFor(const Member& member, const DraftContext& context,
                               OfMember* of_member) const {
  const int first = ProposesTrees(member.id) ? PathRecord::kRanks : 1;
  double least = kLeastReached;
  if (!context.row_prices.empty()) {
    least = std::max(least, kAgreeing * *std::ranges::min_element(context.row_prices));
  }
  const double price = PriceOf(member);
  const int levels =
      ChancesOf(member, *of_member).Levels(first, context.lookahead, std::max(price, least));
  const double worth = of_member->worth.MeanWith(member.worth.MeanWith(0, 0), kWorthOfOthers);
  if (levels > 0 && worth >= levels * price) return levels;
  if (++of_member->rounds_without < kRoundsBetween) return 0;
  of_member->rounds_without = 0;
  return std::min(kTriedLevels, context.lookahead);
}

DraftContext EnsembleDrafter::ContextFor(const Member& member, const DraftContext& whole,
                                         int levels, Proposal* proposal) const {
  DraftContext context = whole;
  context.taps.part = {.first = whole.taps.part.first + member.taps.first,
                       .width = member.taps.width};
  context.lookahead = levels;
  context.max_nodes = std::min(whole.max_nodes, levels);
  if (ProposesTrees(member.id)) {
    // A member that proposes trees of what it retrieves has no levels of its own.
    context.max_nodes = std::min(whole.max_nodes, kNodesOfLevel * levels);
    context.lookahead = std::min(whole.lookahead, context.max_nodes);
  } else if (whole.tree_width > 1) {
    context.max_nodes = whole.max_nodes;
  }
  context.row_prices = {};
  context.proposal = proposal;
  context.distributions = nullptr;
  return context;
}

void EnsembleDrafter::Ask(std::size_t number, std::span<DraftContext> contexts) {
  Member& member = members_[number];
  asked_.clear();
  int levels = 0;
  bool all_known = true;
  for (const DraftContext& context : contexts) {
    OfMember& of_member = slots_.For(context.sequence).members[number];
    const int wanted = LevelsFor(member, context, &of_member);
    if (wanted == 0) continue;
    asked_.push_back(ContextFor(member, context, wanted, &of_member.proposal));
    levels += wanted;
    of_member.asked = true;
    // The first time a draft reads all of the text.
    all_known = all_known && of_member.known;
    of_member.known = true;
  }
  if (asked_.empty()) return;
  const std::int64_t start = NowNs();
  member.drafter->Propose(asked_);
  member.asked += asked_.size();
  if (!all_known) return;
  member.level_ns.Decay(kKeepTime);
  member.level_ns.Add(static_cast<double>(NowNs() - start) / levels);
}

void EnsembleDrafter::Propose(std::span<DraftContext> contexts) {
  Settle(contexts);
  for (std::size_t i = 0; i < members_.size(); ++i) Ask(i, contexts);
  for (DraftContext& context : contexts) {
    Slot& slot = slots_.For(context.sequence);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      slot.merge.Add(i, slot.members[i].proposal, ChancesOf(members_[i], slot.members[i]));
    }
    slot.merge.Best({agreements_, slot.agreements}, context.lookahead, context.max_nodes,
                    context.row_prices, context.proposal);
    if (context.proposal->size() > 0) {
      context.proposal->source = ProposalSource::Of(DrafterId::kEnsemble);
    }
  }
}

std::unique_ptr<Drafter> MakeEnsembleDrafter(const DrafterParts& parts) {
  std::vector<EnsembleMember> members;
  for (const DrafterMember& member : parts.members) {
    members.push_back({.id = member.id,
                       .taps = member.taps,
                       .drafter = MakeDrafter(member.id, parts.Of(member))});
  }
  return std::make_unique<EnsembleDrafter>(std::move(members), parts.max_sequences);
}

}  // namespace foretoken
