#include "apps/lab/plan/fingerprints.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace foretoken {
namespace {

namespace fs = std::filesystem;

TEST(Fingerprint, FollowsTheModelNotTheFolder) {
  const fs::path original = fs::path(FORETOKEN_SOURCE_DIR) / "models" / "demo-draft";
  const fs::path copy = fs::path(testing::TempDir()) / "foretoken_fingerprint_test";
  fs::remove_all(copy);
  fs::copy(original, copy);
  const Result<std::string> first = FingerprintModel(original.string());
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->size(), 64);
  EXPECT_EQ(*FingerprintModel(copy.string()), *first);

  {  // The last byte of the file belongs to a tensor.
    std::fstream weights(copy / "model.safetensors",
                         std::ios::in | std::ios::out | std::ios::binary);
    weights.seekg(-1, std::ios::end);
    const char changed = static_cast<char>(weights.get() ^ 1);
    weights.seekp(-1, std::ios::end);
    weights.put(changed);
  }
  EXPECT_NE(*FingerprintModel(copy.string()), *first);
  fs::remove_all(copy);
  EXPECT_FALSE(FingerprintModel(copy.string()).ok());
}

TEST(Fingerprint, TellsTheModelsApart) {
  const std::string models = std::string(FORETOKEN_SOURCE_DIR) + "/models/";
  const Result<ModelFingerprints> pair =
      FingerprintModels({.target = models + "demo-target", .draft = models + "demo-draft"});
  ASSERT_TRUE(pair.ok()) << pair.error().message;
  EXPECT_NE(pair->target, pair->draft);
  EXPECT_FALSE(pair->tokenizer.empty());
  EXPECT_TRUE(
      FingerprintModels({.target = models + "demo-target", .precision = "f32"})->draft.empty());
  EXPECT_EQ(pair->kv, "bf16");
  EXPECT_EQ(FingerprintModels({.target = models + "demo-target", .kv = "q8_0"})->kv, "q8_0");
}

}  // namespace
}  // namespace foretoken
