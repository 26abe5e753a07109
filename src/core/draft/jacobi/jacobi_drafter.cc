#include <algorithm>
#include <unordered_map>

#include "base/numbers/philox.h"
#include "core/draft/registry.h"
#include "core/draft/target_choice.h"

namespace foretoken {
namespace {

// Jacobi decoding (Santilli et al., 2023): a chain of K guesses, all replaced in every pass by what
// the target says behind the guess before them. What does not hang on a wrong guess is then right.
class JacobiDrafter : public Drafter {
 public:
  explicit JacobiDrafter(const DrafterParts& parts) : choice_(parts.backend, parts.vocabulary) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) Propose(context);
  }

  // Node i of a chain is the guess at position `verified.tokens.size()` + i - 1. The row of the
  // accepted node says the bonus token, the rows behind it what to guess next.
  void Observe(const VerifiedProposal& verified) override {
    Guesses& guesses = guesses_[verified.sequence];
    guesses.tokens.clear();
    for (int node = verified.outcome.node + 1; node <= verified.proposal->size(); ++node) {
      guesses.tokens.push_back(choice_.After(verified, node));
    }
    guesses.begin = verified.tokens.size() + verified.outcome.node + 1;
  }

  void Forget(SequenceId sequence) override { guesses_.erase(sequence); }

 private:
  struct Guesses {
    std::size_t begin = 0;  // The position of the first.
    StaticVector<Token, kMaxProposal> tokens;
  };

  void Propose(const DraftContext& context) {
    context.proposal->Clear();
    Guesses& guesses = guesses_[context.sequence];
    if (guesses.begin != context.tokens.size()) guesses.tokens.clear();
    const int length = std::min(context.lookahead, context.max_nodes);
    for (int i = 0; i < length; ++i) {
      const bool known = i < std::ssize(guesses.tokens);
      context.proposal->Extend(known ? guesses.tokens[i] : FirstGuess(context, i));
    }
    if (length > 0) context.proposal->source = ProposalSource::Of(DrafterId::kJacobi);
  }

  // Where nothing was guessed yet: some token of the text, since texts repeat their words, drawn
  // anew for each place, since a constant would be wrong at all of them.
  static Token FirstGuess(const DraftContext& context, int place) {
    const std::uint64_t size = context.tokens.size();
    const std::uint64_t draw =
        PhiloxDraw(context.sampling->seed, size + place, 0, NoisePurpose::kDrafting);
    return context.tokens[(draw * size) >> 32];
  }

  TargetChoice choice_;
  std::unordered_map<SequenceId, Guesses> guesses_;
};

}  // namespace

std::unique_ptr<Drafter> MakeJacobiDrafter(const DrafterParts& parts) {
  return std::make_unique<JacobiDrafter>(parts);
}

}  // namespace foretoken
