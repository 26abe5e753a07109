#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/draft/ensemble/agreement_record.h"
#include "core/draft/ensemble/path_merge.h"
#include "core/draft/ensemble/path_record.h"
#include "core/draft/registry.h"
#include "core/draft/sequence_slots.h"
#include "core/prediction/estimates.h"

namespace foretoken {

/// One whose proposals an ensemble merges.
struct EnsembleMember {
  DrafterId id{};
  TapPart taps;  ///< As DrafterMember's.
  std::unique_ptr<Drafter> drafter;
};

/// An ensemble (SpecInfer, Miao et al. 2023): its members propose for the same place, and their
/// proposals become one tree of the nodes that their records say are likeliest to come true.
///
/// A member is asked for so many levels as are worth the time that it takes for one; where none is,
/// or what was accepted of its proposals and of no earlier member's is not worth its time, for a
/// few now and then. Its distributions are fixed by the text, so it never tells any.
class EnsembleDrafter final : public Drafter {
 public:
  /// For so many sequences that are decoded together. `level_price`: what a member's level costs,
  /// in tokens that would be decoded in its time; measured, for each member, where it is not given.
  EnsembleDrafter(std::vector<EnsembleMember> members, int max_sequences,
                  std::optional<double> level_price = std::nullopt);

  void Propose(std::span<DraftContext> contexts) override;
  void Observe(const VerifiedProposal& verified) override;
  void Forget(SequenceId sequence) override;
  void Remember(const EndedText& text) override;

  /// How often member number i was asked, for one sequence each time.
  std::int64_t asked(std::size_t i) const { return members_[i].asked; }

 private:
  struct Member : EnsembleMember {
    PathRecord record;     // How often its proposals came true in all sequences.
    DecayingSum level_ns;  // What a level of its proposals takes, for one sequence.
    // Tokens that came true by it first, each time that it was asked; at first as if many did.
    DecayingSum worth{.sum = 32, .weight = 8};
    std::int64_t asked = 0;
  };
  // What a sequence knows of a member.
  struct OfMember {
    PathRecord record;
    Proposal proposal;   // Its last one, empty where it was not asked.
    bool asked = false;  // The last time.
    DecayingSum worth;   // Member::worth, of the sequence.
    bool known = false;  // It has been asked before.
    int rounds_without = 0;
  };
  struct Slot {
    std::size_t tokens = 0;   // The length of the text that was proposed for last.
    std::uint64_t round = 0;  // The round of that proposal.
    std::vector<OfMember> members;
    PathMerge merge;  // The paths of the last proposals.
    AgreementRecord agreements;
  };

  // Learns what has come true of the last proposals, and how fast the text goes on.
  void Settle(std::span<DraftContext> contexts);
  void SettleSequence(const DraftContext& context, Slot* slot);
  PathChances ChancesOf(const Member& member, const OfMember& of_member) const {
    return {member.record, of_member.record, InfoOf(member.id).usual_acceptance};
  }
  void Ask(std::size_t number, std::span<DraftContext> contexts);
  // Levels that member `number` is asked for; 0: not in this round.
  int LevelsFor(const Member& member, const DraftContext& context, OfMember* of_member) const;
  DraftContext ContextFor(const Member& member, const DraftContext& whole, int levels,
                          Proposal* proposal) const;

  double PriceOf(const Member& member) const;

  const std::optional<double> level_price_;
  std::vector<Member> members_;
  SequenceSlots<Slot> slots_;
  std::vector<DraftContext> asked_;  // The contexts that one member is asked with.
  AgreementRecord agreements_;       // The agreements in all sequences.
  std::uint64_t round_ = 0;
  std::int64_t round_began_ns_ = 0;
  // The tokens and times of late rounds, all sequences together.
  DecayingSum tokens_;
  DecayingSum ns_;
};

}  // namespace foretoken
