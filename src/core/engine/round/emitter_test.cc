#include "core/engine/round/emitter.h"

#include <gtest/gtest.h>

#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

struct Listener : RequestListener {
  void OnRound(SequenceId /*sequence*/, const RoundRecord& round) override {
    EXPECT_TRUE(tokens.empty());  // Comes first.
    accepted = round.accepted;
  }
  void OnToken(SequenceId /*sequence*/, const EmittedToken& token) override {
    tokens.push_back(token.token);
    origins.push_back(token.origin);
    if (token.logprobs != nullptr) chosen_logprobs.push_back(token.logprobs->front().logprob);
  }
  void OnFinish(SequenceId /*sequence*/, FinishReason /*reason*/,
                const RequestStats& /*stats*/) override {}

  int accepted = -1;
  std::vector<Token> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<float> chosen_logprobs;
};

// What a prompt's listener is told.
struct PromptListener : Listener {
  void OnPrompt(SequenceId /*sequence*/, const ScoredPrompt& prompt) override {
    tokens_told.emplace_back(prompt.tokens.begin(), prompt.tokens.end());
    for (const auto& entry : prompt.logprobs) {
      scored.push_back(entry.front().token);
      likeliest.push_back(entry.at(1).token);
    }
  }

  std::vector<std::vector<Token>> tokens_told;
  std::vector<Token> scored;
  std::vector<Token> likeliest;
};

TEST(Emitter, TellsAPromptOnceAllItsLogprobsAreThere) {
  PromptListener listener;
  const auto sequence = DecodingSequence(1, {1, 2, 3, 4}, {}, &listener);
  sequence->request.prompt_logprobs = 1;
  std::vector<float> logits(4 * 16);
  logits[1 * 16 + 7] = 2;
  logits[2 * 16 + 8] = 2;
  Emitter emitter(16, 2);
  sequence->prompt_logits = 2;
  sequence->first_prompt_logits = 1;
  emitter.ScorePrompt(logits.data(), sequence.get());
  EXPECT_TRUE(listener.tokens_told.empty());
  EXPECT_TRUE(sequence->scores_prompt());
  EXPECT_FALSE(sequence->Scores(1));  // Not again, where the sequence is preempted here.
  sequence->prompt_logits = 1;
  sequence->first_prompt_logits = 2;
  for (int pass = 0; pass < 2; ++pass) {
    emitter.ScorePrompt(logits.data(), sequence.get());
    sequence->prompt_logits = 0;
  }
  EXPECT_EQ(listener.tokens_told, (std::vector<std::vector<Token>>{{1, 2, 3, 4}}));
  EXPECT_EQ(listener.scored, (std::vector<Token>{2, 3, 4}));
  EXPECT_EQ(listener.likeliest, (std::vector<Token>{7, 8, 8}));
  EXPECT_EQ(sequence->stats.first_token_ns, 0);
}

struct EmbeddingListener : Listener {
  void OnEmbedding(SequenceId /*sequence*/, std::span<const float> embedding) override {
    embeddings.emplace_back(embedding.begin(), embedding.end());
  }

  std::vector<std::vector<float>> embeddings;
};

TEST(Emitter, TellsTheMeanOfAPromptOnceAllItsStatesAreThere) {
  EmbeddingListener listener;
  const auto sequence = DecodingSequence(1, {1, 2, 3}, {}, &listener);
  sequence->request.embedding = Pooling::kMean;
  const std::vector<float> states = {9, 9, 1, 0, 2, 1, 0, 3};
  const Emitter emitter(16, 2);
  sequence->states = 2;
  sequence->first_state = 1;
  sequence->kv.committed = 2;
  emitter.PoolPrompt(states.data(), sequence.get());
  EXPECT_TRUE(listener.embeddings.empty());
  EXPECT_FALSE(sequence->Pools(1));  // Not again, where the sequence is preempted here.
  EXPECT_TRUE(sequence->Pools(2));
  sequence->states = 1;
  sequence->first_state = 3;
  sequence->kv.committed = 3;
  emitter.PoolPrompt(states.data(), sequence.get());
  EXPECT_EQ(listener.embeddings, (std::vector<std::vector<float>>{{0.6F, 0.8F}}));
  EXPECT_NE(sequence->stats.first_token_ns, 0);
}

TEST(Emitter, TellsTheRoundThenItsTokensWithTheLogprobsOfTheirRows) {
  Listener listener;
  const auto sequence = DecodingSequence(1, {1, 2}, {}, &listener);
  sequence->request.sampling.top_logprobs = 0;
  sequence->verified.Append(0, 3);
  sequence->verified.Append(0, 4);
  sequence->verified.source = ProposalSource::kDraft;
  for (const Token token : {4, 5}) sequence->emitted.push_back(token);
  for (const int node : {0, 2}) sequence->verified_nodes.push_back(static_cast<std::int8_t>(node));
  sequence->accepted = 1;
  sequence->first_logits = 1;
  std::vector<float> logits(4 * 16);
  logits[1 * 16 + 4] = 2;  // Row of the root: token 4.
  logits[3 * 16 + 5] = 9;  // Row of node 2: token 5.
  Emitter emitter(16, 2);
  emitter.Emit({}, logits.data(), sequence.get());
  EXPECT_EQ(listener.accepted, 1);
  EXPECT_EQ(listener.tokens, (std::vector<Token>{4, 5}));
  EXPECT_EQ(listener.origins,
            (std::vector<TokenOrigin>{TokenOrigin::kAccepted, TokenOrigin::kBonus}));
  ASSERT_EQ(listener.chosen_logprobs.size(), 2U);
  EXPECT_LT(listener.chosen_logprobs[0], -0.5F);
  EXPECT_GT(listener.chosen_logprobs[1], -0.01F);
  EXPECT_NE(sequence->stats.first_token_ns, 0);
}

}  // namespace
}  // namespace foretoken
