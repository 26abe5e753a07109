#include "core/model/measure/pass_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "core/model/config/named_shapes.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

using testing::ElementsAre;

class PassTimesTest : public testing::Test {
 protected:
  static ModelConfig Config() {
    ModelConfig config = *NamedShape("draft-12m");
    config.vocabulary = 500;
    config.layers.resize(2);
    config.max_positions = 128;
    return config;
  }

  std::unique_ptr<Backend> backend_ = BackendCases().front().make(Precision::kBF16);
  std::unique_ptr<Model> model_ = SyntheticModel(Config(), 1, backend_.get());
};

constexpr std::array kRows = {1, 2, 3, 4, 6, 8};

TEST_F(PassTimesTest, NeverFallWithMoreRows) {
  constexpr std::array kContexts = {16, 64, 1000};
  const PassTimes times = MeasurePassTimes(*model_, kRows, kContexts, 10'000'000'000);
  EXPECT_THAT(times.rows, testing::ElementsAreArray(kRows));
  EXPECT_THAT(times.contexts, ElementsAre(16, 64));  // 1000 is beyond the model's.
  ASSERT_EQ(times.us.size(), 2 * kRows.size());
  EXPECT_GT(times.us[0], 0);
  for (std::size_t i = 2; i < times.us.size(); ++i) EXPECT_GE(times.us[i], times.us[i - 2]);
}

TEST_F(PassTimesTest, NoRowCountCostsMuchMoreThanItsParts) {
  constexpr std::array kContexts = {16};
  const PassTimes times = MeasurePassTimes(*model_, kRows, kContexts, 10'000'000'000);
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    for (std::size_t part = 0; part < i; ++part) {
      const double passes = std::ceil(static_cast<double>(kRows[i]) / kRows[part]);
      EXPECT_LE(times.us[i], 1.11 * passes * times.us[part]) << kRows[i] << " of " << kRows[part];
    }
  }
}

TEST_F(PassTimesTest, MeasuresWhatSaysMostWhereThereIsNoTime) {
  constexpr std::array kContexts = {16, 64};
  const PassTimes times = MeasurePassTimes(*model_, kRows, kContexts, 0);
  EXPECT_THAT(times.rows, ElementsAre(1));
  EXPECT_THAT(times.contexts, ElementsAre(16));
  EXPECT_EQ(times.us.size(), 1U);
}

TEST_F(PassTimesTest, SweepsMeasureTheSamePoints) {
  constexpr std::array kContexts = {16, 64};
  const PassTimes times = MeasurePassTimes(*model_, kRows, kContexts, 10'000'000'000, 3);
  EXPECT_THAT(times.rows, testing::ElementsAreArray(kRows));
  EXPECT_THAT(times.contexts, ElementsAre(16, 64));
  ASSERT_EQ(times.us.size(), 2 * kRows.size());
  for (std::size_t i = 0; i < times.us.size(); ++i) EXPECT_GT(times.us[i], 0) << i;
}

// Notes the tokens of passes.
class NotingModel final : public Model {
 public:
  explicit NotingModel(Model* model) : model_(model) {}

  using Model::Forward;
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override {
    auto& tokens = passes.emplace_back();
    for (const ForwardRow& row : batch.rows) tokens.push_back(row.token);
    return model_->Forward(batch, kv, interrupt);
  }
  const ModelConfig& config() const override { return model_->config(); }
  Backend& backend() const override { return model_->backend(); }
  std::size_t weight_bytes() const override { return model_->weight_bytes(); }
  void Reserve(std::size_t rows, std::size_t wanted) override { model_->Reserve(rows, wanted); }
  const float* states() const override { return model_->states(); }

  std::vector<std::vector<Token>> passes;

 private:
  Model* model_;
};

// Rows of one token choose the same experts, and a pass over many of them seems as cheap as one
// over one.
TEST_F(PassTimesTest, RowsDifferInEveryPass) {
  NotingModel noting(model_.get());
  PassProbe probe(&noting, 2, 4, 16);
  PassProbe other(&noting, 1, 8, 16);
  for (PassProbe* each : {&probe, &other}) {
    each->Set(each == &probe ? 4 : 8, 16);
    for (int pass = 0; pass < 3; ++pass) each->Us();
  }
  ASSERT_EQ(noting.passes.size(), 6U);
  std::set<Token> seen;
  for (std::size_t pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(noting.passes[pass], noting.passes[pass + 3]);
    seen.insert(noting.passes[pass].begin(), noting.passes[pass].end());
  }
  EXPECT_GE(seen.size(), 20U);  // There are 24, drawn from 500.
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), Config().vocabulary);
}

TEST_F(PassTimesTest, ContentionIsNoGain) {
  const auto other = SyntheticModel(Config(), 2, backend_.get());
  Device first({0});
  Device second({0});
  const Contention contention = MeasureContention({model_.get(), &first}, {other.get(), &second});
  EXPECT_GE(contention.first, 1);
  EXPECT_GE(contention.second, 1);
}

TEST_F(PassTimesTest, AFurtherSequenceCostsNothingOrMore) {
  EXPECT_GE(MeasureSequenceTokenUs(*model_, 64), 0);
  EXPECT_GE(MeasureSequenceTokenUs(*model_, 100'000), 0);  // At most the model's context.
}

}  // namespace
}  // namespace foretoken
