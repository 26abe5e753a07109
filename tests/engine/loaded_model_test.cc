#include "door/assembly/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/config/named_shapes.h"
#include "door/assembly/fit_draft.h"
#include "tests/engine/engine_testing.h"

namespace foretoken {
namespace {

std::shared_ptr<Device> OneCore() { return std::make_shared<Device>(CoreSet{TargetCore()}); }

TEST(LoadedModel, SyntheticModelsHaveNoTokenizer) {
  const auto loaded = LoadModel({.synthetic = "draft-12m"}, OneCore(), Precision::kF32);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->tokenizer, nullptr);
  EXPECT_EQ((*loaded)->constraints, nullptr);
}

TEST(LoadedModel, SharesTheDeviceItIsGiven) {
  const auto opened = OpenModel({.path = BundledModel("demo-draft")});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto loaded = LoadModel(*opened, BundledTarget()->device, Precision::kBF16);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->device, BundledTarget()->device);
}

TEST(LoadedModel, OnAnotherDeviceItHasTheSameWeights) {
  const LoadedModel& target = *BundledTarget();
  const auto other = OnDevice(target, OneCore());
  EXPECT_EQ(other->weights, target.weights);
  EXPECT_EQ(other->tokenizer, target.tokenizer);
  EXPECT_EQ(other->backend->precision(), target.backend->precision());
  EXPECT_NE(other->model, target.model);
  EXPECT_NE(other->constraints, target.constraints);  // Each is for one engine.
}

TEST(LoadedModel, RefusesADraftOfAnotherSizeThatHasNoTokens) {
  const LoadedModel& target = *BundledTarget();
  const auto fit = [&](const char* shape, const ModelConfig& to) {
    return FitDraft(to, target.tokenizer, OpenModel({.synthetic = shape}).value());
  };
  const auto refused = fit("draft-12m", target.model->config());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("must share one vocabulary"));
  const auto same = fit("draft-12m", NamedShape("llama-135m").value());
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same->translation, nullptr);
}

TEST(LoadedModel, ADraftOfTheTargetsVocabularyIsNotTranslated) {
  std::string notice;
  const LoadedModel& target = *BundledTarget();
  OpenedModel opened = OpenModel({.path = BundledModel("demo-draft")}).value();
  const ModelIdentity identity = opened.identity;
  const auto fitted =
      FitDraft(target.model->config(), target.tokenizer, std::move(opened), &notice);
  ASSERT_TRUE(fitted.ok()) << fitted.error().message;
  EXPECT_EQ(fitted->translation, nullptr);
  EXPECT_EQ(fitted->identity, identity);
  EXPECT_EQ(notice, "");
}

TEST(LoadedModel, IsUsedForTheContextThatIsAskedFor) {
  const std::string path = BundledModel("demo-draft");
  const auto whole = OpenModel({.path = path});
  const auto less = OpenModel({.path = path, .context = 64});
  const auto more = OpenModel({.path = path, .context = 1 << 20});
  ASSERT_TRUE(whole.ok() && less.ok() && more.ok());
  EXPECT_EQ(less->config.max_positions, 64);
  EXPECT_EQ(more->config.max_positions, whole->config.max_positions);
  EXPECT_EQ(less->identity, whole->identity);  // It rotates as ever.
  EXPECT_EQ(OpenModel({.synthetic = "draft-12m", .context = 64})->config.max_positions, 64);
  for (const int context : {-1, 1}) {
    const auto none = OpenModel({.path = path, .context = context});
    ASSERT_FALSE(none.ok());
    EXPECT_THAT(none.error().message, testing::HasSubstr("must be at least 2"));
  }
}

TEST(LoadedModel, WeightsOfAnotherContextAreNotShared) {
  const std::string path = BundledModel("demo-draft");
  PackedWeights packed;
  const auto load = [&](std::optional<int> context) {
    return LoadModel(*OpenModel({.path = path, .context = context}), OneCore(), Precision::kF32,
                     &packed)
        .value();
  };
  const auto less = load(64);
  const auto same = load(64);
  const auto whole = load({});
  EXPECT_EQ(less->weights, same->weights);
  EXPECT_NE(less->weights, whole->weights);
}

TEST(LoadedModel, SaysWhichNameIsUnknown) {
  const auto loaded = LoadModel({.synthetic = "nothing"}, OneCore(), Precision::kF32);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("nothing"));
}

}  // namespace
}  // namespace foretoken
