#include "core/model/measure/text_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>

#include "base/numbers/integers.h"
#include "core/model/config/named_shapes.h"
#include "core/model/families/read_config.h"
#include "core/model/model_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/checkpoint.h"
#include "json/json.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

constexpr Token kBegin = 1;

TextWindows MustCut(std::int64_t tokens, int length, int stride = 0) {
  const auto windows = TextWindows::Cut(tokens, length, stride);
  EXPECT_TRUE(windows.ok()) << (windows.ok() ? "" : windows.error().message);
  return *windows;
}

TEST(TextWindows, LieSideBySideOrAStrideApart) {
  const TextWindows halves = MustCut(1000, 100);
  EXPECT_EQ(halves.count, 10);
  EXPECT_EQ(halves.Begin(9), 900);
  EXPECT_EQ(halves.scored, 49);  // After 51 others at least.
  EXPECT_EQ(MustCut(1099, 100).count, 10);
  const TextWindows sliding = MustCut(1000, 100, 30);
  EXPECT_EQ(sliding.count, 31);
  EXPECT_EQ(sliding.Begin(30), 900);
  EXPECT_EQ(sliding.scored, 30);
  EXPECT_EQ(sliding.scored_tokens(), 930);
}

TEST(TextWindows, OfAShortTextIsOne) {
  for (const int tokens : {2, 3, 4, 99}) {
    const TextWindows one = MustCut(tokens, 100);
    EXPECT_EQ(one.length, tokens);
    EXPECT_EQ(one.count, 1);
    EXPECT_EQ(one.scored, tokens == 2 ? 1 : (tokens - 1) / 2) << tokens;
  }
}

TEST(TextWindows, RefuseWhatScoresNothing) {
  EXPECT_THAT(TextWindows::Cut(1, 100, 0).error().message, HasSubstr("the text has 1 token,"));
  EXPECT_THAT(TextWindows::Cut(0, 100, 0).error().message, HasSubstr("the text has 0 tokens,"));
  EXPECT_THAT(TextWindows::Cut(500, 100, 100).error().message, HasSubstr("a stride of 100"));
  EXPECT_THAT(TextWindows::Cut(50, 100, 50).error().message, HasSubstr("a window of 50"));
  EXPECT_TRUE(TextWindows::Cut(500, 100, 99).ok());
}

TEST(Mean, HasTheErrorOfItsNumbers) {
  Mean mean;
  mean.Add(1);
  EXPECT_TRUE(std::isnan(mean.standard_error()));
  for (const double number : {2, 4, 5}) mean.Add(number);
  EXPECT_EQ(mean.count(), 4);
  EXPECT_EQ(mean.value(), 3);
  EXPECT_DOUBLE_EQ(mean.standard_error(), std::sqrt(10.0 / 3 / 4));
  EXPECT_DOUBLE_EQ(ExpOf(mean), std::exp(3));
  EXPECT_DOUBLE_EQ(ExpErrorOf(mean), std::exp(3) * std::sqrt(10.0 / 3 / 4));
}

// Random weights, of which the reference has others.
class TextScoreTest : public testing::Test {
 protected:
  static ModelConfig Config() {
    ModelConfig config = *NamedShape("draft-12m");
    config.vocabulary = 500;  // No multiple of the strips in which it is summed.
    config.layers.resize(2);
    config.max_positions = 400;
    return config;
  }

  struct Models {
    explicit Models(CoreSet cores)
        : device(std::move(cores)), backend(device.MakeBackend(Precision::kBF16)) {}

    Device device;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Model> model = SyntheticModel(Config(), 1, backend.get());
    std::unique_ptr<Model> reference = SyntheticModel(Config(), 2, backend.get());
  };

  static std::vector<Token> Text(int length) {
    std::vector<Token> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(i * 7919 % 500);
    return tokens;
  }

  static TextScore Score(TextScorer scorer) {
    while (!scorer.done()) {
      const Status status = scorer.Pass();
      EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    }
    return scorer.score();
  }

  Models one_core_{CoreSet{AvailableCores().front()}};
};

// Probabilities by the C library, of all rows of a window.
std::vector<std::vector<double>> LogProbabilities(Model* model, std::span<const Token> window) {
  SequenceRunner runner(model, Int(window.size()));
  const float* logits = runner.Append(window);
  const int vocabulary = model->config().vocabulary;
  std::vector<std::vector<double>> rows;
  for (std::size_t r = 0; r < window.size(); ++r, logits += vocabulary) {
    double sum = 0;
    for (int i = 0; i < vocabulary; ++i) sum += std::exp(double{logits[i]});
    std::vector<double>& row = rows.emplace_back();
    for (int i = 0; i < vocabulary; ++i) row.push_back(double{logits[i]} - std::log(sum));
  }
  return rows;
}

struct Plain {
  std::vector<double> losses, reference_losses, divergences;
  std::int64_t agreed = 0;
};

Plain PlainScore(Model* model, Model* reference, std::span<const Token> tokens,
                 std::optional<Token> begin, const TextWindows& windows) {
  Plain plain;
  for (std::int64_t w = 0; w < windows.count; ++w) {
    const auto from = tokens.begin() + windows.Begin(w);
    std::vector<Token> window(from, from + windows.length);
    if (begin) window[0] = *begin;
    const auto rows = LogProbabilities(model, window);
    const auto others = LogProbabilities(reference, window);
    for (int t = windows.length - windows.scored; t < windows.length; ++t) {
      const std::vector<double>& q = rows[t - 1];
      const std::vector<double>& p = others[t - 1];
      plain.losses.push_back(-q[window[t]]);
      plain.reference_losses.push_back(-p[window[t]]);
      double divergence = 0;
      for (std::size_t i = 0; i < p.size(); ++i) divergence += std::exp(p[i]) * (p[i] - q[i]);
      plain.divergences.push_back(divergence);
      plain.agreed +=
          std::ranges::max_element(p) - p.begin() == std::ranges::max_element(q) - q.begin() ? 1
                                                                                             : 0;
    }
  }
  return plain;
}

void ExpectMean(const Mean& mean, const std::vector<double>& numbers) {
  double sum = 0;
  double squares = 0;
  for (const double number : numbers) sum += number;
  const double expected = sum / static_cast<double>(numbers.size());
  for (const double number : numbers) squares += (number - expected) * (number - expected);
  const auto count = static_cast<double>(numbers.size());
  EXPECT_EQ(mean.count(), std::ssize(numbers));
  EXPECT_NEAR(mean.value(), expected, 1e-12);
  EXPECT_NEAR(mean.standard_error(), std::sqrt(squares / (count - 1) / count), 1e-12);
}

TEST_F(TextScoreTest, IsWhatPlainArithmeticOnLogitsGives) {
  struct Case {
    int tokens, length, stride;
    std::optional<Token> begin;
  };
  Models& at = one_core_;
  // Windows shorter than a pass, of which passes end in the middle; longer than a pass; one; next
  // to no context.
  for (const Case& test :
       {Case{1000, 40, 0, kBegin}, Case{700, 300, 0, std::nullopt}, Case{500, 300, 90, kBegin},
        Case{33, 40, 0, kBegin}, Case{90, 3, 1, kBegin}, Case{600, 2, 0, std::nullopt}}) {
    SCOPED_TRACE(testing::Message() << test.tokens << " in windows of " << test.length);
    const std::vector<Token> tokens = Text(test.tokens);
    const TextWindows windows = MustCut(test.tokens, test.length, test.stride);
    const Plain plain = PlainScore(at.model.get(), at.reference.get(), tokens, test.begin, windows);
    const TextScore score =
        Score({&at.device, at.model.get(), at.reference.get(), tokens, test.begin, windows});
    EXPECT_EQ(score.rows, windows.count * (windows.length - 1));
    EXPECT_EQ(score.loss.count(), windows.scored_tokens());
    ExpectMean(score.loss, plain.losses);
    ExpectMean(score.reference_loss, plain.reference_losses);
    ExpectMean(score.divergence, plain.divergences);
    EXPECT_NEAR(score.excess.value(), score.loss.value() - score.reference_loss.value(), 1e-12);
    EXPECT_EQ(score.agreed, plain.agreed);
  }
}

TEST_F(TextScoreTest, HasTheSameBitsOnAnyNumberOfCores) {
  const CoreSet cores = AvailableCores();
  Models two(CoreSet{cores.front(), cores.back()});
  const std::vector<Token> tokens = Text(900);
  const TextWindows windows = MustCut(900, 70, 20);
  const TextScore one = Score({&one_core_.device, one_core_.model.get(), one_core_.reference.get(),
                               tokens, kBegin, windows});
  const TextScore other =
      Score({&two.device, two.model.get(), two.reference.get(), tokens, kBegin, windows});
  const TextScore alone = Score({&two.device, two.model.get(), nullptr, tokens, kBegin, windows});
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  for (const auto mean : {&TextScore::loss, &TextScore::excess, &TextScore::divergence}) {
    EXPECT_EQ(bits((one.*mean).value()), bits((other.*mean).value()));
    EXPECT_EQ(bits((one.*mean).standard_error()), bits((other.*mean).standard_error()));
  }
  EXPECT_EQ(one.agreed, other.agreed);
  EXPECT_EQ(bits(alone.loss.value()), bits(one.loss.value()));
  EXPECT_EQ(alone.reference_loss.count(), 0);
}

TEST_F(TextScoreTest, FindsNoDifferenceFromItself) {
  Models& at = one_core_;
  const std::vector<Token> tokens = Text(200);
  const TextScore score =
      Score({&at.device, at.model.get(), at.model.get(), tokens, kBegin, MustCut(200, 50)});
  EXPECT_EQ(score.excess.value(), 0);
  EXPECT_NEAR(score.divergence.value(), 0, 1e-14);
  EXPECT_EQ(score.agreed, score.loss.count());
}

// The model with a logit that is no number after one token.
class BrokenModel final : public Model {
 public:
  BrokenModel(Model* model, Token after) : model_(model), after_(after) {}

  using Model::Forward;
  Logits Forward(const ForwardBatch& batch, KvStore& kv, Interrupt interrupt) override {
    const float* logits = model_->Forward(batch, kv, interrupt).values;
    std::size_t row = 0;
    logits_.clear();
    for (const ForwardRow& given : batch.rows) {
      if (!given.wants_logits) continue;
      const float* values = logits + row++ * Size(config().vocabulary);
      logits_.insert(logits_.end(), values, values + config().vocabulary);
      if (given.token == after_) logits_.back() = NAN;
    }
    return logits_.data();
  }
  const ModelConfig& config() const override { return model_->config(); }
  Backend& backend() const override { return model_->backend(); }
  std::size_t weight_bytes() const override { return model_->weight_bytes(); }
  void Reserve(std::size_t rows, std::size_t wanted) override { model_->Reserve(rows, wanted); }
  const float* states() const override { return model_->states(); }

 private:
  Model* model_;
  Token after_;
  std::vector<float> logits_;
};

TEST_F(TextScoreTest, SaysWhichTokenHasNoProbability) {
  const std::vector<Token> tokens = Text(200);
  BrokenModel broken(one_core_.model.get(), tokens[180]);
  for (const auto& [model, reference] :
       {std::pair<Model*, Model*>{&broken, nullptr}, {one_core_.model.get(), &broken}}) {
    TextScorer scorer(&one_core_.device, model, reference, tokens, kBegin, MustCut(200, 50));
    Status status = scorer.Pass();
    while (status.ok() && !scorer.done()) status = scorer.Pass();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("token 181 of the text has no probability"));
  }
}

// What tests/golden/make_states.py computed in float64, by another program from the file to the
// logarithm.
TEST(TextScoreGolden, LossesAgree) {
  const std::string root = FORETOKEN_SOURCE_DIR;
  const auto all = Json::Parse(std::ifstream(root + "/tests/golden/states.json"));
  for (const auto& [name, golden] : all.items()) {
    SCOPED_TRACE(name);
    const auto tokens = golden["prompt_ids"].get<std::vector<Token>>();
    const auto logprobs = golden["logprobs"].get<std::vector<double>>();
    Device device({AvailableCores().front()});
    const auto backend = device.MakeBackend(Precision::kF32);
    const auto checkpoint = OpenCheckpoint(root + "/models/" + name, "");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    const auto weights =
        LoadWeights(*checkpoint, *ReadModelConfig(*checkpoint), backend.get()).value();
    const auto model = weights->MakeModel(backend.get());
    // The first token is the one that begins a text.
    const int length = tokens.size();
    TextScorer scorer(&device, model.get(), nullptr, tokens, std::nullopt,
                      MustCut(length, length, length - 1));
    ASSERT_TRUE(scorer.Pass().ok());
    EXPECT_TRUE(scorer.done());
    double sum = 0;
    for (const double logprob : logprobs) sum -= logprob;
    ASSERT_EQ(scorer.score().loss.count(), std::ssize(logprobs));
    EXPECT_NEAR(scorer.score().loss.value(), sum / static_cast<double>(logprobs.size()), 2e-6);
  }
}

}  // namespace
}  // namespace foretoken
