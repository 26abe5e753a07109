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
  EXPECT_TRUE(CheckPair(*BundledTarget(), *opened).ok());
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

TEST(LoadedModel, RefusesADraftWithAnotherVocabulary) {
  const auto draft = OpenModel({.synthetic = "draft-12m"});
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  const Status status = CheckPair(*BundledTarget(), *draft);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, testing::HasSubstr("must share one vocabulary"));
}

TEST(LoadedModel, SaysWhichNameIsUnknown) {
  const auto loaded = LoadModel({.synthetic = "nothing"}, OneCore(), Precision::kF32);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("nothing"));
}

}  // namespace
}  // namespace foretoken
