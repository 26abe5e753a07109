#include "core/model/heads/read_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/heads/golden_heads_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

class ExtraHeadsTest : public GoldenHeads {
 protected:
  using ChangeTensors = std::function<void(Checkpoint&)>;

  Result<LearnedDraft> With(const ChangeTensors& change) {
    return GoldenHeads::With("mtp-extra_heads", Of(change), "mtp");
  }
  std::string Refusal(const ChangeTensors& change) {
    return GoldenHeads::Refusal("mtp-extra_heads", Of(change), "mtp");
  }

 private:
  static Change Of(const ChangeTensors& change) {
    return [&change](Checkpoint& folder, Json& /*json*/) { change(folder); };
  }
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
