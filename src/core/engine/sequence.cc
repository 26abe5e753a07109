#include "core/engine/sequence.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/numbers/integers.h"

namespace foretoken {

std::string_view FinishReasonName(FinishReason reason) {
  constexpr std::array<std::string_view, 9> kNames = {
      "end_of_sequence", "stop_token",   "stop_string", "max_tokens", "grammar_end",
      "grammar_stuck",   "context_full", "not_finite",  "cancelled"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string NotFiniteMessage(std::string_view model) {
  return fmt::format(
      "the model '{}' computed numbers that are infinite or NaN, so it has no next token: its "
      "weights are damaged, or too large for how they are computed; try --precision f32 or another "
      "copy of the model",
      model);
}

Sequence::Sequence(SequenceId sequence_id, Request new_request, const SpeculationPlan& first_plan,
                   int vocabulary, int max_context, const std::vector<Token>& eos,
                   const Tokenizer* tokenizer)
    : id(sequence_id),
      request(std::move(new_request)),
      prompt_tokens(Int(request.prompt.size())),
      tokens(request.prompt),
      stop_tokens(request.stop.stop_tokens),
      history(vocabulary, std::min(request.sampling.penalty_window, max_context)),
      plan(first_plan),
      max_context_(max_context),
      stop_text_(request.stop.stop_strings) {
  tokens.reserve(
      std::min<std::size_t>(max_context, request.prompt.size() + Size(request.stop.max_tokens)));
  kv.scope = {.owner = request.prefix_scope, .adapter = request.adapter};
  if (!request.stop.ignore_eos) stop_tokens.insert(stop_tokens.end(), eos.begin(), eos.end());
  history.AddPrompt(request.prompt);
  if (request.sampling.constraint != nullptr) {
    const bool drops_space =
        tokenizer != nullptr && !request.continues_text && tokenizer->DropsLeadingSpace();
    history.Constrain(*request.sampling.constraint, drops_space);
  }
  if (tokenizer != nullptr) decoder_.emplace(tokenizer, request.continues_text);
  stats.prompt_tokens = prompt_tokens;
}

int Sequence::TokensLeft() const {
  return std::max(
      0, std::min(request.stop.max_tokens - output_tokens(), max_context_ - Int(tokens.size())));
}

int Sequence::DepthLimit() const { return std::clamp(TokensLeft() - 1, 0, NodeLimit()); }

int Sequence::NodeLimit() const {
  return std::clamp(max_context_ - Int(tokens.size()) - 1, 0, kMaxProposal);
}

std::optional<FinishReason> Sequence::EndAfter(Token token, int outputs) const {
  if (std::ranges::count(request.stop.stop_tokens, token) > 0) return FinishReason::kStopToken;
  if (std::ranges::count(stop_tokens, token) > 0) return FinishReason::kEndOfSequence;
  if (const ConstraintCursor* constraint = history.constraint(); constraint != nullptr) {
    if (!constraint->MayContinue()) {
      return constraint->MayEnd() ? FinishReason::kGrammarEnd : FinishReason::kGrammarStuck;
    }
  }
  if (outputs >= request.stop.max_tokens) return FinishReason::kMaxTokens;
  if (prompt_tokens + outputs >= max_context_) return FinishReason::kContextFull;
  return std::nullopt;
}

int Sequence::Commit(std::span<const Token> new_tokens) {
  int committed = 0;
  for (const Token token : new_tokens) {
    tokens.push_back(token);
    history.AddOutput(token);
    ++committed;
    finish = EndAfter(token, output_tokens());
    if (finish.has_value()) break;
  }
  return committed;
}

TokenOrigin Sequence::OriginOf(std::size_t index) const {
  if (index + 1 == verified_nodes.size()) return TokenOrigin::kBonus;
  const bool drafted = verified.source.kind == ProposalSource::Kind::kDrafter &&
                       IsDraftModel(verified.source.drafter);
  return drafted || verified.source == ProposalSource::kCache ? TokenOrigin::kAccepted
                                                              : TokenOrigin::kFallback;
}

std::string_view Sequence::EmitText(Token token, bool last) {
  text_.clear();
  if (!decoder_.has_value()) return text_;
  bool stopped = stop_text_.Push(decoder_->Push(token), &text_);
  if (!stopped && last) {
    stopped = stop_text_.Push(decoder_->Finish(), &text_);
    if (!stopped) stop_text_.Flush(&text_);
  }
  if (stopped) {
    finish = FinishReason::kStopString;
    stats.stop_string = stop_text_.found();
  }
  return text_;
}

}  // namespace foretoken
