#include "core/model/translated_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/backend/testing/reference_backend.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

constexpr int kOwn = 200;
constexpr int kOther = 330;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

ModelConfig SmallTranslated() {
  ModelConfig config = LlamaConfig({.hidden = 32,
                                    .intermediate = 64,
                                    .layers = 1,
                                    .heads = 2,
                                    .kv_heads = 1,
                                    .head_dim = 16,
                                    .vocabulary = kOwn,
                                    .max_positions = 64});
  config.eos = {7};
  return config;
}

// Every third token has no logit, and none of the last group, which is short; the others are the
// model's in another order.
constexpr Token SaidAs(Token token) {
  return token % 3 == 0 || token >= 2 * kLogitGroup ? -1 : (token * 77 + 5) % kOwn;
}
constexpr Token ReadAs(Token token) { return (token * 13 + 1) % kOwn; }

std::shared_ptr<const Translation> Other() {
  Translation translation{.read = {}, .said = {}, .bos = 300, .eos = {301, 302}};
  for (Token token = 0; token < kOther; ++token) {
    translation.read.push_back(ReadAs(token));
    translation.said.push_back(SaidAs(token));
  }
  return std::make_shared<const Translation>(std::move(translation));
}

class TranslatedModelTest : public testing::Test {
 protected:
  // A pass over these tokens, of which all but the second want logits.
  Logits Run(Model& model, std::span<const Token> tokens, Interrupt interrupt = {}) {
    batch_.Clear();
    batch_.block_tables = {table_};
    for (std::int32_t i = 0; i < std::ssize(tokens); ++i) {
      batch_.rows.push_back({tokens[i], {i, i, 0, i + 1, 0}, i != 1});
    }
    return model.Forward(batch_, kv_, interrupt);
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  std::unique_ptr<Model> plain_ = SyntheticModel(SmallTranslated(), 1, backend_.get());
  std::unique_ptr<Model> translated_ =
      Translate(SyntheticModel(SmallTranslated(), 1, backend_.get()), Other());
  KvStore kv_ = backend_->AllocateKv(plain_->KvShapeFor(1));
  const std::int32_t table_[1] = {0};
  ForwardBatch batch_;
};

TEST_F(TranslatedModelTest, IsOneOfTheOthersTokens) {
  EXPECT_EQ(translated_->config().vocabulary, kOther);
  EXPECT_EQ(translated_->config().bos, 300);
  EXPECT_THAT(translated_->config().eos, testing::ElementsAre(301, 302));
  EXPECT_EQ(translated_->config().hidden, plain_->config().hidden);
  EXPECT_EQ(translated_->weight_bytes(), plain_->weight_bytes());
}

TEST_F(TranslatedModelTest, LogitsAreThoseOfItsOwnTokens) {
  const std::vector<Token> tokens = {300, 2, 41};
  std::vector<Token> own;
  for (const Token token : tokens) own.push_back(ReadAs(token));
  // Twice: what has been grown is used again.
  for (int pass = 0; pass < 2; ++pass) {
    const Logits expected = Run(*plain_, own);
    const Logits logits = Run(*translated_, tokens);
    for (int wanted = 0; wanted < 2; ++wanted) {
      const Logits row = logits.Row(wanted, kOther);
      std::vector<float> maxima(Logits::Groups(kOther), kMinusInfinity);
      for (Token token = 0; token < kOther; ++token) {
        const float logit =
            SaidAs(token) < 0 ? kMinusInfinity : expected.Row(wanted, kOwn).values[SaidAs(token)];
        ASSERT_EQ(row.values[token], logit) << token;
        float& most = maxima[token / kLogitGroup];
        most = std::max(most, logit);
      }
      EXPECT_THAT(std::span(row.maxima, maxima.size()), testing::ElementsAreArray(maxima));
    }
  }
}

TEST_F(TranslatedModelTest, WhatItCannotSayIsNeverChosen) {
  const Logits row = Run(*translated_, std::vector<Token>{5});
  std::size_t can = 0;
  for (Token token = 0; token < kOther; ++token) can += SaidAs(token) >= 0 ? 1 : 0;
  for (const float temperature : {0.0F, 1.0F}) {
    std::vector<Candidate> best(kOther);
    const std::size_t count = backend_->NoisyTop(row, kOther, temperature, {}, best);
    EXPECT_EQ(count, can);
    for (std::size_t i = 0; i < count; ++i) EXPECT_GE(SaidAs(best[i].token), 0);
  }
}

TEST_F(TranslatedModelTest, IsInterruptedLikeTheModel) {
  const Interrupt at_once{[](void*) { return true; }, nullptr};
  EXPECT_EQ(Run(*translated_, std::vector<Token>{5}, at_once).values, nullptr);
  // Without wanted logits no values are still not null.
  batch_.rows[0].wants_logits = false;
  EXPECT_NE(translated_->Forward(batch_, kv_).values, nullptr);
}

}  // namespace
}  // namespace foretoken
