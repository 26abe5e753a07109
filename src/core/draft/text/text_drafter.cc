#include "core/draft/text/text_drafter.h"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

// A vocabulary that is smaller cuts texts into more tokens.
constexpr int kTokensPerToken = 2;

DrafterParts PartsOfDraft(const DrafterParts& parts) {
  DrafterParts own = parts;
  own.vocabulary = parts.draft->config().vocabulary;
  if (own.vocabulary < parts.vocabulary) own.max_context *= kTokensPerToken;
  own.bytes_of = nullptr;
  return own;
}

// How many tokens the draft takes to say what the target says in `tokens`, by the text so far; one
// more, so that the last of the target's has its end.
int DraftTokensFor(int tokens, std::size_t draft_read, std::size_t target_read) {
  const double ratio = static_cast<double>(draft_read) / static_cast<double>(target_read);
  return std::clamp(static_cast<int>(std::ceil(tokens * ratio)) + 1, 1, kMaxProposal);
}

}  // namespace

TextDrafter::TextDrafter(DrafterId id, const DrafterParts& parts)
    : source_(ProposalSource::Of(id)),
      vocabulary_(parts.vocabulary),
      link_(parts.text),
      drafter_(id, PartsOfDraft(parts)),
      history_(parts.draft->config().vocabulary),
      slots_(parts.max_sequences) {
  asked_.reserve(slots_.size());
  open_.reserve(slots_.size());
}

void TextDrafter::Forget(SequenceId sequence) {
  slots_.Forget(sequence, [](Slot& slot) { slot = Slot{}; });
  drafter_.Forget(sequence);
}

void TextDrafter::Propose(std::span<DraftContext> contexts) {
  asked_.clear();
  open_.clear();
  for (const DraftContext& context : contexts) Ask(context, &slots_.For(context.sequence));
  drafter_.ProposeBehind(asked_, open_);
  for (const DraftContext& context : contexts) Translate(context, slots_.For(context.sequence));
}

void TextDrafter::Ask(const DraftContext& context, Slot* slot) {
  slot->drafted.Clear();
  if (slot->text == nullptr) slot->text = link_->NewText();
  slot->text->Read(context.tokens);
  const std::span<const Token> read = slot->text->tokens();
  const int wanted = std::min(context.lookahead, context.max_nodes);
  if (wanted <= 0 || read.empty()) return;
  const int length = DraftTokensFor(wanted, read.size(), context.tokens.size());
  asked_.push_back({.sequence = context.sequence,
                    .tokens = read,
                    .sampling = &greedy_,
                    .history = &history_,
                    .scope = context.scope,
                    .lookahead = length,
                    .max_nodes = length,
                    .proposal = &slot->drafted});
  open_.push_back(static_cast<int>(read.size() - slot->text->settled()));
}

void TextDrafter::Translate(const DraftContext& context, const Slot& slot) {
  Proposal& proposal = *context.proposal;
  proposal.Clear();
  const std::size_t most = std::min(context.lookahead, context.max_nodes);
  const std::vector<Token> tokens = slot.text->TargetTokensOf(context.tokens, slot.drafted.tokens);
  for (const Token token : std::span(tokens).first(std::min(most, tokens.size()))) {
    if (token < 0 || token >= vocabulary_) break;
    proposal.Extend(token);
  }
  if (proposal.size() > 0) proposal.source = source_;
}

}  // namespace foretoken
