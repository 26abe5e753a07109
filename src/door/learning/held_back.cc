#include "door/learning/held_back.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/draft/registry.h"
#include "core/sampling/history.h"
#include "door/assembly/make_engine.h"

namespace foretoken {

Result<std::unique_ptr<JudgedDraft>> JudgedDraft::Load(LoadedModel* target,
                                                       const DraftOptions& draft,
                                                       const TapShape& taps) {
  std::unique_ptr<JudgedDraft> judged(new JudgedDraft);
  judged->taps_ = taps;
  judged->vocabulary_ = target->model->config().vocabulary;
  FT_ASSIGN_OR_RETURN(judged->loaded_, LoadDraftApart(target, draft));
  return judged;
}

DraftScore JudgedDraft::Score(const StatedText& text, int lookahead) {
  const auto length = static_cast<std::int32_t>(text.tokens.size());
  // What the target's passes would have kept of it: a position's slot is its number.
  SequenceKv kv;
  kv.blocks.resize(BlocksFor(length));
  std::iota(kv.blocks.begin(), kv.blocks.end(), 0);
  TapStore store = TapStore::Allocate(taps_, std::ssize(kv.blocks) * kBlockSize);
  std::ranges::copy(text.states, store.Row(0));
  kv.committed = length - 1;

  const auto drafter = MakeDrafter(DrafterId::kModel, {.vocabulary = vocabulary_,
                                                       .max_sequences = 1,
                                                       .max_context = length,
                                                       .draft = {loaded_, loaded_->model.get()}});
  TokenHistory history(vocabulary_, std::min(text.sampling.penalty_window, length));
  const std::span<const Token> tokens = text.tokens;
  history.AddPrompt(tokens.first(text.prompt_tokens));
  DraftScore score;
  // The first token of the output is that of the prompt's pass, whatever drafts.
  std::int32_t committed = text.prompt_tokens;
  std::int32_t next = committed + 1;
  while (next < length) {
    for (; committed < next; ++committed) history.AddOutput(tokens[committed]);
    Proposal proposal;
    DraftContext context{.sequence = last_ + 1,
                         .tokens = tokens.first(committed),
                         .sampling = &text.sampling,
                         .history = &history,
                         .taps = {&store, &kv},
                         .lookahead = lookahead,
                         .max_nodes = lookahead,
                         .proposal = &proposal};
    drafter->Propose({&context, 1});
    int accepted = 0;
    while (accepted < proposal.size() && next + accepted < length &&
           proposal.tokens[accepted] == tokens[next + accepted]) {
      ++accepted;
    }
    next = std::min(length, next + accepted + 1);
    ++score.rounds;
  }
  ++last_;
  score.tokens = std::max(0, length - text.prompt_tokens - 1);
  return score;
}

DraftScore Total(std::span<const DraftScore> scores) {
  DraftScore total;
  for (const DraftScore& score : scores) {
    total.tokens += score.tokens;
    total.rounds += score.rounds;
  }
  return total;
}

bool IsBetter(std::span<const DraftScore> other, std::span<const DraftScore> in_use) {
  if (Total(other).tokens_per_round() <= Total(in_use).tokens_per_round()) return false;
  double sum = 0;
  double squares = 0;
  int count = 0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (other[i].rounds == 0) continue;
    const double gain = other[i].tokens_per_round() - in_use[i].tokens_per_round();
    sum += gain;
    squares += gain * gain;
    ++count;
  }
  if (count < 2) return false;
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1);
  return mean > std::sqrt(variance / count);
}

}  // namespace foretoken
