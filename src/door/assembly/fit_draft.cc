#include "door/assembly/fit_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/files/read_file.h"
#include "base/numbers/sha256.h"
#include "core/model/reduced_head.h"
#include "door/assembly/text_link.h"
#include "text/tokenizer/pair/token_ranking.h"
#include "text/tokenizer/pair/vocabulary_match.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxRankingBytes = std::size_t{256} << 20;

// The draft with the target's tokens.
Result<OpenedModel> Translated(const ModelConfig& target,
                               const std::shared_ptr<const Tokenizer>& tokenizer, OpenedModel draft,
                               std::string* notice) {
  const bool same_size = target.vocabulary == draft.config.vocabulary;
  if (tokenizer == nullptr || draft.tokenizer == nullptr) {
    if (same_size) return draft;
    return Invalid(
        "the draft's output has {} entries and the target's {}: the pair must share one "
        "vocabulary, or both have tokenizers by which to match them",
        draft.config.vocabulary, target.vocabulary);
  }
  const bool same_tokens = CheckSameVocabulary(*tokenizer, *draft.tokenizer).ok();
  if (same_tokens && same_size) return draft;
  VocabularyMatch match = MatchVocabularies(*tokenizer, *draft.tokenizer);
  FT_RETURN_IF_ERROR(CheckEnoughShared(match, *tokenizer));
  if (!same_tokens && notice != nullptr) {
    *notice = fmt::format("the draft has another vocabulary than the target: {}", match.Summary());
  }
  // Ids beyond the tokenizer's stand for nothing.
  const std::size_t size = target.vocabulary;
  match.same.resize(size, -1);
  match.read.resize(size, draft.tokenizer->bos().value_or(0));
  draft.translation = std::make_shared<const Translation>(
      Translation{std::move(match.read), std::move(match.same), target.bos, target.eos});
  draft.identity =
      ModelIdentity::Of(draft.checkpoint->Fingerprint(),
                        Sha256Hex(tokenizer->fingerprint() + draft.tokenizer->fingerprint()));
  draft.tokenizer = tokenizer;
  return draft;
}

// All of a vocabulary, as they are.
Translation Unchanged(const ModelConfig& target) {
  std::vector<Token> all(target.vocabulary);
  std::iota(all.begin(), all.end(), 0);
  return {all, all, target.bos, target.eos};
}

// The target's tokens in the order of a ranking.
Result<std::vector<Token>> RankedTokens(const DraftVocabulary& wanted, const ModelConfig& target,
                                        const Tokenizer* tokenizer) {
  std::vector<Token> tokens;
  if (tokenizer == nullptr) {
    if (wanted.ranking.empty()) return Unchanged(target).said;
    return Invalid("{} ranks the tokens of a tokenizer, and random weights have none",
                   wanted.ranking);
  }
  if (wanted.ranking.empty()) {
    return InvalidInput(
        "the draft's most frequent tokens are not known: `foretoken datastore rank` makes a file "
        "that ranks them");
  }
  const auto text = ReadFile(wanted.ranking, kMaxRankingBytes);
  if (!text.ok()) {
    return Invalid("{}: cannot be read: {}", wanted.ranking, text.error().message);
  }
  FT_ASSIGN_OR_RETURN(const TokenRanking ranking, ParseTokenRanking(*text, wanted.ranking));
  FT_RETURN_IF_ERROR(CheckRanks(ranking, *tokenizer, wanted.ranking));
  for (const TokenRanking::Entry& entry : ranking.entries) tokens.push_back(entry.token);
  return tokens;
}

// By the target's tokens: whether the draft may say it.
Result<std::vector<bool>> SayableTokens(const DraftVocabulary& wanted, const ModelConfig& target,
                                        const Tokenizer* tokenizer) {
  FT_ASSIGN_OR_RETURN(std::vector<Token> tokens, RankedTokens(wanted, target, tokenizer));
  if (wanted.most && std::cmp_less(*wanted.most, tokens.size())) {
    tokens.resize(std::max(0, *wanted.most));
  }
  tokens.insert(tokens.end(), target.eos.begin(), target.eos.end());
  if (tokenizer != nullptr) {
    const std::vector<Token> ends = tokenizer->eos();
    tokens.insert(tokens.end(), ends.begin(), ends.end());
  }
  std::vector<bool> sayable(target.vocabulary);
  for (const Token token : tokens) {
    if (token >= 0 && token < target.vocabulary) sayable[token] = true;
  }
  return sayable;
}

}  // namespace

Result<OpenedModel> FitDraft(const ModelConfig& target,
                             const std::shared_ptr<const Tokenizer>& tokenizer, OpenedModel draft,
                             std::string* notice) {
  FT_ASSIGN_OR_RETURN(draft, Translated(target, tokenizer, std::move(draft), notice));
  const Tokenizer* common = draft.tokenizer == nullptr ? nullptr : tokenizer.get();
  return LimitDraft(target, common, std::move(draft));
}

Result<OpenedModel> FitByText(const std::shared_ptr<const Tokenizer>& tokenizer,
                              OpenedModel draft) {
  if (tokenizer == nullptr || draft.tokenizer == nullptr) {
    return InvalidInput(
        "drafting by text needs the tokenizers of target and draft, and random weights have none");
  }
  if (!draft.draft_vocabulary.whole()) {
    return InvalidInput(
        "a draft that drafts by text has tokens of its own, and is not limited to the most "
        "frequent ones of the target: leave --draft-vocab out");
  }
  draft.text = LinkByText(tokenizer, draft.tokenizer);
  return draft;
}

bool SharesTooLittle(const Tokenizer* target, const Tokenizer* draft) {
  if (target == nullptr || draft == nullptr || CheckSameVocabulary(*target, *draft).ok()) {
    return false;
  }
  return !CheckEnoughShared(MatchVocabularies(*target, *draft), *target).ok();
}

Result<OpenedModel> LimitDraft(const ModelConfig& target, const Tokenizer* tokenizer,
                               OpenedModel draft) {
  if (draft.draft_vocabulary.whole()) return draft;
  if (draft.config.embeddings() != draft.config.vocabulary) {
    return Invalid("the draft was made to say {} of {} tokens, and is not limited further",
                   draft.config.vocabulary, draft.config.embeddings());
  }
  FT_ASSIGN_OR_RETURN(const std::vector<bool> sayable,
                      SayableTokens(draft.draft_vocabulary, target, tokenizer));
  Translation translation =
      draft.translation == nullptr ? Unchanged(target) : Translation(*draft.translation);
  std::vector<Token> rows;  // The rows that are kept of the draft's head.
  std::string said;
  for (std::size_t token = 0; token < sayable.size(); ++token) {
    Token& own = translation.said[token];
    if (own < 0) continue;
    if (sayable[token]) {
      rows.push_back(std::exchange(own, static_cast<Token>(rows.size())));
      said += fmt::format("{} ", token);
    } else {
      own = -1;
    }
  }
  if (rows.empty()) {
    return InvalidInput("the draft has none of the most frequent tokens that it is limited to");
  }
  ReduceHead(rows, &draft.config, draft.checkpoint.has_value() ? &*draft.checkpoint : nullptr);
  draft.translation = std::make_shared<const Translation>(std::move(translation));
  draft.identity = Changed(draft.identity, fmt::format("says {}", said));
  draft.weights_of.reset();
  return draft;
}

Result<OpenedModel> LimitWindow(const DraftWindow& window, OpenedModel draft) {
  if (window.positions < 1) {
    return Invalid("a draft's window of {} positions: it must see at least 1, the last one",
                   window.positions);
  }
  if (window.anchors < 0) {
    return Invalid("a draft sees {} first positions besides its window: it must be 0 or more",
                   window.anchors);
  }
  bool sees = false;
  for (LayerSpec& layer : draft.config.layers) {
    AttentionSpec& attention = layer.attention;
    if (attention.heads == 0) continue;
    sees = true;
    if (attention.window > 0 && attention.window <= window.positions) continue;
    attention.window = window.positions;
    attention.anchors = window.anchors;
  }
  if (!sees) {
    return InvalidInput(
        "the draft has no attention, whose positions a window could limit: leave the window out");
  }
  draft.identity =
      Changed(draft.identity, fmt::format("sees {} and {}", window.anchors, window.positions));
  return draft;
}

}  // namespace foretoken
