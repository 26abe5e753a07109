#include "model/heads/extra_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/drafters/own_drafter.h"
#include "model/families/read_config.h"
#include "model/open_checkpoint.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

std::filesystem::path Folder(const std::string& name) {
  return std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/drafters" / name;
}

// A golden folder of heads, changed in memory.
class ExtraHeadsTest : public testing::Test {
 protected:
  static Checkpoint Open(const std::string& name) { return Checkpoint::Open(Folder(name)).value(); }

  Result<LearnedDraft> With(const std::function<void(Checkpoint&)>& change) {
    Checkpoint folder = Open("mtp-extra_heads");
    change(folder);
    return ReadDrafter("mtp", std::move(folder), target_, target_config_);
  }
  std::string Refusal(const std::function<void(Checkpoint&)>& change) {
    const auto draft = With(change);
    return draft.ok() ? "no error" : draft.error().message;
  }

  Checkpoint target_ = OpenCheckpoint(Folder("target"), "").value();
  ModelConfig target_config_ = *ReadModelConfig(target_);
};

TEST_F(ExtraHeadsTest, AreLayersBesideTheLast) {
  EXPECT_TRUE(HasExtraHeads(Open("mtp-extra_heads")));
  EXPECT_FALSE(HasExtraHeads(Open("target")));
  EXPECT_FALSE(IsLearnedDraft(Open("mtp-extra_heads")));
  const auto draft = With([&](Checkpoint& folder) {
    const Checkpoint model = Open("target");
    folder.tensors.insert(model.tensors.begin(), model.tensors.end());
  });
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft->config.layer_count(), 3);
  EXPECT_EQ(draft->config.layers[2], target_config_.layers.back());
  EXPECT_EQ(draft->config.feature.points, std::vector{6});
  EXPECT_EQ(draft->config.parallel, (ParallelSpec{.positions = 3, .mask_token = 0, .block = 3}));
  for (const char* shared : {"embedding.weight", "head.weight", "output_norm.weight"}) {
    EXPECT_EQ(draft->checkpoint.Find(shared)->data, target_.Find(shared)->data);
  }
}

TEST_F(ExtraHeadsTest, AreRefusedWhereTheyAreNotWhole) {
  EXPECT_THAT(Refusal([](Checkpoint& folder) {
                folder.tensors.erase("model.extra_heads.1.mlp.up_proj.weight");
              }),
              HasSubstr("lacks tensor model.extra_heads.1.mlp.up_proj.weight"));
  EXPECT_THAT(Refusal([](Checkpoint& folder) {
                folder.tensors["model.extra_heads.2.odd.weight"] =
                    *folder.Find("model.extra_heads.1.mlp.up_proj.weight");
              }),
              HasSubstr("has tensor 'model.extra_heads.2.odd.weight', which is none of its 3"));
  EXPECT_THAT(Refusal([](Checkpoint& folder) {
                std::erase_if(folder.tensors, [](const auto& tensor) {
                  return tensor.first.starts_with("model.extra_heads.0.");
                });
              }),
              HasSubstr("has 0 extra heads, but from 1 to 63 are supported"));
  EXPECT_THAT(Refusal([](Checkpoint& folder) {
                std::erase_if(folder.tensors, [](const auto& tensor) {
                  return tensor.first.starts_with("model.extra_heads.1.");
                });
              }),
              HasSubstr("which is none of its 1 extra heads"));
  EXPECT_THAT(Refusal([](Checkpoint& folder) {
                folder.tensors["model.extra_heads.0.mlp.up_proj.weight"].shape = {8, 8};
              }),
              HasSubstr("model.extra_heads.0.mlp.up_proj.weight must have shape [32, 32]"));
  target_config_.family = "qwen2";
  EXPECT_THAT(Refusal([](Checkpoint& /*folder*/) {}),
              HasSubstr("has extra heads, which of llama models only are supported, but this is a "
                        "qwen2 model"));
}

}  // namespace
}  // namespace foretoken
