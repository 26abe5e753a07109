#include "assembly/loaded_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembly/engine_testing.h"

namespace foretoken {
namespace {

TEST(LoadedModel, SyntheticModelsHaveNoTokenizer) {
  const auto loaded =
      LoadModel({.synthetic = "draft-12m"}, {AvailableCores().front()}, Precision::kF32);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->tokenizer, nullptr);
  EXPECT_EQ((*loaded)->constraints, nullptr);
}

TEST(LoadedModel, SharesThePoolItIsGiven) {
  const auto loaded = LoadModel({.directory = BundledModel("demo-draft")},
                                BundledTarget()->pool.get(), Precision::kBF16);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->pool, nullptr);
  EXPECT_TRUE(CheckPair(*BundledTarget(), **loaded).ok());
}

TEST(LoadedModel, RefusesADraftWithAnotherVocabulary) {
  const auto draft =
      LoadModel({.synthetic = "draft-12m"}, BundledTarget()->pool.get(), Precision::kBF16);
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  const Status status = CheckPair(*BundledTarget(), **draft);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, testing::HasSubstr("must share one vocabulary"));
}

TEST(LoadedModel, SaysWhichNameIsUnknown) {
  const auto loaded =
      LoadModel({.synthetic = "nothing"}, {AvailableCores().front()}, Precision::kF32);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("nothing"));
}

}  // namespace
}  // namespace foretoken
