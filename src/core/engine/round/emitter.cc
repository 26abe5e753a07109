#include "core/engine/round/emitter.h"

#include <algorithm>
#include <cmath>

#include "base/threads/clock.h"

namespace foretoken {
namespace {

// The vector divided by its length.
std::vector<float> Normalised(std::span<const double> vector) {
  double squares = 0;
  for (const double value : vector) squares += value * value;
  const double length = squares > 0 ? std::sqrt(squares) : 1;
  std::vector<float> normalised;
  normalised.reserve(vector.size());
  for (const double value : vector) normalised.push_back(static_cast<float>(value / length));
  return normalised;
}

}  // namespace

void Emitter::ScorePrompt(Logits logits, Sequence* sequence) {
  const int top = sequence->request.prompt_logprobs;
  if (top < 0 || sequence->prompt_told) return;
  for (int i = 0; i < sequence->prompt_logits; ++i) {
    const Token next = sequence->tokens[++sequence->scored];
    const float* row = logits.Row(sequence->first_prompt_logits + i, vocabulary_).values;
    if (!ComputeLogprobs(row, vocabulary_, next, top, &sequence->prompt_logprobs.emplace_back())) {
      sequence->finish = FinishReason::kNotFinite;
    }
  }
  if (sequence->scores_prompt() || sequence->finish == FinishReason::kNotFinite) return;
  sequence->prompt_told = true;
  if (sequence->request.stop.max_tokens == 0) sequence->stats.first_token_ns = NowNs();
  const std::span<const Token> tokens(sequence->tokens);
  sequence->request.listener->OnPrompt(
      sequence->id,
      {.tokens = tokens.first(sequence->prompt_tokens), .logprobs = sequence->prompt_logprobs});
  sequence->prompt_logprobs = {};
}

void Emitter::PoolPrompt(const float* states, Sequence* sequence) const {
  if (sequence->states == 0) return;
  std::vector<double>& sum = sequence->state_sum;
  sum.resize(hidden_);
  const float* row = states + std::int64_t{sequence->first_state} * hidden_;
  for (int r = 0; r < sequence->states; ++r, row += hidden_) {
    for (int i = 0; i < hidden_; ++i) sum[i] += row[i];
  }
  sequence->pooled = sequence->kv.committed;
  if (sequence->pooled < sequence->prompt_tokens) return;
  sequence->stats.first_token_ns = NowNs();
  // A mean points where its sum does.
  const std::vector<float> embedding = Normalised(sum);
  if (!std::ranges::all_of(embedding, [](float value) { return std::isfinite(value); })) {
    sequence->finish = FinishReason::kNotFinite;
    return;
  }
  sequence->request.listener->OnEmbedding(sequence->id, embedding);
}

void Emitter::Emit(const Round& round, Logits logits, Sequence* sequence) {
  sequence->request.listener->OnRound(sequence->id, {.round = sequence->stats.rounds,
                                                     .mode = sequence->plan.mode,
                                                     .lookahead = sequence->plan.lookahead,
                                                     .source = sequence->verified.source,
                                                     .proposed = sequence->verified.tokens,
                                                     .parents = sequence->verified.parents,
                                                     .node = sequence->outcome.node,
                                                     .bonus = sequence->outcome.bonus,
                                                     .accepted = sequence->accepted,
                                                     .hit_rank = sequence->hit_rank,
                                                     .hit = sequence->hit,
                                                     .round_ns = round.all_ns});
  if (sequence->stats.first_token_ns == 0) sequence->stats.first_token_ns = NowNs();
  const int top = sequence->request.sampling.top_logprobs;
  const std::size_t count = sequence->emitted.size();
  for (std::size_t i = 0; i < count; ++i) {
    EmittedToken emitted{.token = sequence->emitted[i], .origin = sequence->OriginOf(i)};
    const bool last = i + 1 == count && sequence->finish.has_value() &&
                      sequence->finish != FinishReason::kNotFinite;
    emitted.text = sequence->EmitText(emitted.token, last);
    if (top >= 0) {
      const std::int64_t row = sequence->first_logits + sequence->verified_nodes[i];
      ComputeLogprobs(logits.Row(row, vocabulary_).values, vocabulary_, emitted.token, top,
                      &logprobs_);
      emitted.logprobs = &logprobs_;
    }
    sequence->request.listener->OnToken(sequence->id, emitted);
    if (sequence->finish == FinishReason::kStopString) {
      // Tokens of this round behind the stop string do not exist.
      sequence->tokens.resize(sequence->tokens.size() - (count - 1 - i));
      return;
    }
  }
}

}  // namespace foretoken
