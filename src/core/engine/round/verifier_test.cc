#include "core/engine/round/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/numbers/integers.h"
#include "core/backend/testing/reference_backend.h"
#include "core/engine/round/mask_work.h"
#include "core/engine/sequence_testing.h"

namespace foretoken {
namespace {

constexpr int kVerifierVocabulary = 16;

// Greedy logits of a pass: row i chooses choices[i].
std::vector<float> LogitsOf(std::vector<Token> choices) {
  std::vector<float> logits(choices.size() * kVerifierVocabulary);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    logits[i * kVerifierVocabulary + Size(choices[i])] = 1;
  }
  return logits;
}

class VerifierTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  KvStore kv_ = backend_->AllocateKv({.layers = {{.kv_heads = 1, .head_dim = 8}}, .blocks = 4});
  std::unique_ptr<Sequence> sequence_ = DecodingSequence(1, {1, 2, 3});
};

TEST_F(VerifierTest, TakesTheProposalAsFarAsTheTargetAgrees) {
  for (const Token token : {4, 5, 6}) sequence_->proposal.Extend(token);
  sequence_->first_logits = 1;
  Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt);
  const auto logits = LogitsOf({9, 4, 5, 7, 8});
  verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
  EXPECT_EQ(sequence_->outcome, (Outcome{.node = 2, .bonus = 7}));
  EXPECT_THAT(std::vector<Token>(sequence_->emitted.begin(), sequence_->emitted.end()),
              testing::ElementsAre(4, 5, 7));
  EXPECT_EQ(sequence_->verified.size(), 3);

  CommitOutcome({backend_.get(), &kv_}, sequence_.get());
  EXPECT_EQ(sequence_->accepted, 2);
  EXPECT_EQ(sequence_->tokens.size(), 6U);
  EXPECT_EQ(sequence_->kv.committed, 5);  // The bonus token is the next root.
  EXPECT_EQ(sequence_->proposal.size(), 0);
  EXPECT_EQ(sequence_->stats.reached_at[2], 1);
  EXPECT_EQ(sequence_->stats.accepted_at[2], 0);
}

// Rows behind the one that says nothing are not looked at, whatever they hold.
TEST_F(VerifierTest, EndsThePathBeforeLogitsThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (const bool draws : {false, true}) {
        for (const int row : {0, 1}) {
          auto sequence = DecodingSequence(1, {1, 2, 3});
          sequence->request.sampling.temperature = temperature;
          sequence->draws = draws && temperature > 0;
          for (const Token token : {4, 5}) sequence->proposal.Extend(token);
          auto logits = LogitsOf({4, 5, 6});
          for (float& logit : logits) logit *= 1000;  // Sure at temperature 1, too.
          std::fill_n(logits.begin() + row * kVerifierVocabulary, kVerifierVocabulary, bad);
          Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt);
          verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence.get());
          EXPECT_TRUE(sequence->not_finite);
          EXPECT_EQ(sequence->outcome, (Outcome{.node = row, .bonus = -1}));
          EXPECT_EQ(sequence->emitted.size(), Size(row));
          CommitOutcome({backend_.get(), &kv_}, sequence.get());
          EXPECT_EQ(sequence->tokens.size(), 3U + Size(row));
          EXPECT_EQ(sequence->kv.committed, 3 + row);
          EXPECT_FALSE(sequence->finish.has_value());
        }
      }
    }
  }
}

// What AR would never have computed cannot fail.
TEST_F(VerifierTest, ARowBehindTheLimitOfTokensIsNotMissed) {
  for (const Token token : {4, 5}) sequence_->proposal.Extend(token);
  sequence_->stop_tokens = {5};
  auto logits = LogitsOf({4, 5, 6});
  std::fill_n(logits.begin() + 2 * kVerifierVocabulary, kVerifierVocabulary,
              std::numeric_limits<float>::quiet_NaN());
  Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt);
  verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
  CommitOutcome({backend_.get(), &kv_}, sequence_.get());
  EXPECT_EQ(sequence_->finish, FinishReason::kEndOfSequence);
  EXPECT_EQ(sequence_->tokens.back(), 5);
}

TEST_F(VerifierTest, CommitsNothingBehindTheEndOfTheSequence) {
  for (const Token token : {4, 5}) sequence_->proposal.Extend(token);
  sequence_->stop_tokens = {4};
  Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt);
  const auto logits = LogitsOf({4, 5, 6});
  verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
  CommitOutcome({backend_.get(), &kv_}, sequence_.get());
  EXPECT_EQ(sequence_->finish, FinishReason::kEndOfSequence);
  EXPECT_EQ(sequence_->emitted.size(), 1U);
  EXPECT_EQ(sequence_->kv.committed, 4);
}

TEST_F(VerifierTest, AScriptDecidesInPlaceOfTheTarget) {
  const auto outcome = [&](double acceptance) {
    sequence_->proposal.Clear();
    sequence_->proposal.Extend(4);
    Verifier verifier(backend_.get(), kVerifierVocabulary, Script{.acceptance = acceptance});
    const auto logits = LogitsOf({4, 6});
    verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
    return sequence_->outcome;
  };
  EXPECT_EQ(outcome(1), (Outcome{.node = 1, .bonus = 6}));
  EXPECT_EQ(outcome(0), (Outcome{.node = 0, .bonus = 5}));  // Not the proposed token.
}

TEST_F(VerifierTest, AScriptedAnswerIsSaidAsFarAsTheRequestAllows) {
  const std::vector<Token> answer = {4, 5, 6};
  sequence_->scripted = answer;
  const Script script{.answer = [&](auto) { return answer; }};
  Verifier verifier(backend_.get(), kVerifierVocabulary, script);
  const auto emitted = [&](std::vector<Token> proposal) {
    sequence_->proposal.Clear();
    for (const Token token : proposal) sequence_->proposal.Extend(token);
    const auto logits = LogitsOf({9, 9, 9, 9, 9});
    verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
    return std::vector<Token>(sequence_->emitted.begin(), sequence_->emitted.end());
  };
  EXPECT_THAT(emitted({}), testing::ElementsAre(4));
  EXPECT_THAT(emitted({4, 5, 7}), testing::ElementsAre(4, 5, 6));
  EXPECT_THAT(emitted({4, 5, 6, 7}), testing::ElementsAre(4, 5, 6, 9));  // Behind its end.
  // Filters keep what is likeliest, which the answer is.
  sequence_->request.sampling = {.temperature = 1.5F, .top_k = 2, .top_p = 0.5F, .min_p = 0.5F};
  EXPECT_THAT(emitted({4, 5, 6}), testing::ElementsAreArray({4, 5, 6, 9}));
  sequence_->request.sampling = {.temperature = 0, .logit_bias = {{5, -100}}};
  EXPECT_THAT(emitted({4, 5, 6}), testing::ElementsAre(4, 9));
}

TEST_F(VerifierTest, ALossyRuleTakesWhatIsLikelyEnough) {
  for (const Token token : {4, 5, 6}) sequence_->proposal.Extend(token);
  auto logits = LogitsOf({9, 5, 6, 8});
  const auto verify = [&](const LossyRule& rule) {
    Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt, rule);
    verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
    return std::vector<Token>(sequence_->emitted.begin(), sequence_->emitted.end());
  };
  EXPECT_THAT(verify({}), testing::ElementsAre(9));
  const LossyRule relaxed{.kind = Lossy::kTopKRelaxed, .top_k = 2};
  // The choices have logit 1; in row 0 token 4 is the second likeliest.
  logits[4] = 0.9F;
  EXPECT_THAT(verify(relaxed), testing::ElementsAre(4, 5, 6, 8));
  EXPECT_THAT(std::vector<int>(sequence_->lossy.begin(), sequence_->lossy.end()),
              testing::ElementsAre(0));
  EXPECT_THAT(verify({.kind = Lossy::kTopKRelaxed, .top_k = 1}), testing::ElementsAre(9));
  // The distribution is that after the sampler's options: what they leave out is not accepted.
  sequence_->request.sampling.logit_bias = {{4, -100.0F}};
  EXPECT_THAT(verify(relaxed), testing::ElementsAre(9));
  sequence_->request.sampling.logit_bias.clear();

  verify(relaxed);
  CommitOutcome({backend_.get(), &kv_}, sequence_.get());
  EXPECT_EQ(sequence_->stats.lossy, 1);
  EXPECT_EQ(sequence_->stats.accepted, 3);
}

TEST_F(VerifierTest, AJudgeReadsTheStateOfTheProposedTokenItself) {
  // Children of the root: 4, 5 and 6; below 5: 7. Slots are positions here.
  for (const Token token : {4, 5, 6}) sequence_->proposal.Append(0, token);
  sequence_->proposal.Append(2, 7);
  sequence_->kv.blocks = {0};
  // The judge's states lie behind one that somebody else reads.
  TapStore kept = TapStore::Allocate({.points = {2, TapShape::kFinalState}, .hidden = 2}, 16);
  const auto set_state = [&](int node, float x, float y) {
    BFloat16* const state = kept.Row(sequence_->root() + node) + 2;
    state[0] = FloatToBFloat16(x);
    state[1] = FloatToBFloat16(y);
  };
  const JudgeHead head({1, 0}, -1);  // Approves where x > 1.
  set_state(1, 0.5F, 9);
  set_state(2, 4, 9);
  set_state(3, 3, 9);
  set_state(4, 1, 9);
  const auto logits = LogitsOf({9, 1, 1, 1, 1});
  LossyRule rule{.kind = Lossy::kJudge, .judge = "folder"};
  const auto verify = [&] {
    Verifier verifier(backend_.get(), kVerifierVocabulary, std::nullopt, rule,
                      {&head, &kept, {.first = 2, .width = 2}});
    verifier.Verify(logits.data(), nullptr, kProposalMaskSteps, sequence_.get());
    return std::vector<Token>(sequence_->emitted.begin(), sequence_->emitted.end());
  };
  // 5 is the most approved one; of 7 sigmoid(0) is not above the border.
  EXPECT_THAT(verify(), testing::ElementsAre(5, 1));
  EXPECT_EQ(sequence_->lossy.size(), 1U);
  rule.approval = 0.4F;
  EXPECT_THAT(verify(), testing::ElementsAre(5, 7, 1));
  rule.approval = 0.99F;
  EXPECT_THAT(verify(), testing::ElementsAre(9));
  // What the sampler's options leave out is not accepted: the next most approved one is.
  rule.approval = 0.5F;
  sequence_->request.sampling.logit_bias = {{5, -100.0F}};
  EXPECT_THAT(verify(), testing::ElementsAre(6, 1));
}

}  // namespace
}  // namespace foretoken
