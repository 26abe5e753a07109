#include "core/draft/target_choice.h"

#include <algorithm>

namespace foretoken {
namespace {

// On a mask behind a node: about 20 us, so a proposal's take no longer than verifying it.
constexpr std::int64_t kNodeMaskSteps = 1 << 11;

}  // namespace

TargetChoice::TargetChoice(Backend* backend, int vocabulary)
    : backend_(backend), vocabulary_(vocabulary), sampler_(backend, vocabulary) {}

Token TargetChoice::After(const VerifiedProposal& verified, int node) {
  const auto path = PathTokens(*verified.proposal, node);
  const std::uint64_t position = verified.tokens.size() + path.size();
  const Logits row = verified.logits.Row(node, vocabulary_);
  Candidate choice;
  std::int64_t steps = kNodeMaskSteps;
  if (verified.history->PrepareMask(path, &steps)) {
    choice = sampler_.Choose(row, *verified.sampling, *verified.history, path, position);
  }
  if (choice.token < 0) {
    backend_->NoisyTop(row, vocabulary_, verified.sampling->temperature,
                       {verified.sampling->seed, position}, {&choice, 1});
  }
  return std::max(choice.token, Token{0});
}

}  // namespace foretoken
