#include "assembly/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembly/engine_testing.h"

namespace foretoken {
namespace {

std::shared_ptr<Device> OneCore() {
  return std::make_shared<Device>(CoreSet{AvailableCores().front()});
}

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
  EXPECT_EQ(loaded->device, BundledTarget()->device);
}

TEST(LoadedModel, OnAnotherDeviceItHasTheSameWeights) {
  const LoadedModel& target = *BundledTarget();
  const auto other = OnDevice(target, OneCore());
  EXPECT_EQ(other->weights, target.weights);
  EXPECT_EQ(other->tokenizer, target.tokenizer);
  EXPECT_EQ(other->backend->precision(), target.backend->precision());
  EXPECT_NE(other->model, target.model);
  EXPECT_NE(other->constraints, target.constraints);  // Of one engine each.
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

TEST(LoadedModel, SaysWhichNameIsUnknown) {
  const auto loaded = LoadModel({.synthetic = "nothing"}, OneCore(), Precision::kF32);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("nothing"));
}

}  // namespace
}  // namespace foretoken
