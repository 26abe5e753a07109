#include "core/model/heads/read_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/heads/golden_heads_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class MedusaTest : public GoldenHeads {
 protected:
  std::string Refusal(const Change& change) {
    return GoldenHeads::Refusal("medusa-two-blocks", change);
  }
};

TEST_F(MedusaTest, CountsHeadsInTheTensors) {
  EXPECT_TRUE(IsLearnedDraft(Open("medusa")));
  const auto published = Read("medusa");
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(published->config.parallel,
            (ParallelSpec{.positions = 5, .mask_token = 0, .block = 5}));
  EXPECT_EQ(published->config.feature.head_blocks, 1);
  EXPECT_EQ(published->config.parameters(), 5 * 32 * (33 + 128));
  ASSERT_EQ(published->notes.size(), 1U);
  EXPECT_THAT(published->notes[0],
              HasSubstr("medusa_num_heads is 2, but the tensors have 5, which counts"));
  const auto two = Read("medusa-two-blocks");
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(two->config.feature.head_blocks, 2);
  EXPECT_THAT(two->notes, IsEmpty());
}

TEST_F(MedusaTest, OfOneHeadDraftsOneToken) {
  const auto draft = With("medusa", [](Checkpoint& folder, Json& /*json*/) {
    std::erase_if(folder.tensors,
                  [](const auto& tensor) { return !tensor.first.starts_with("0."); });
  });
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft->config.parallel.positions, 1);
  EXPECT_TRUE(draft->config.parallel.there());
}

TEST_F(MedusaTest, RefusesWhatItDoesNotCompute) {
  EXPECT_THAT(Refusal([](Checkpoint& /*folder*/, Json& json) { json["hidden_size"] = 64; }),
              HasSubstr("is for a target whose hidden_size is 64, but this one's is 32"));
  EXPECT_THAT(Refusal([](Checkpoint& /*folder*/, Json& json) { json["vocab_size"] = 64; }),
              HasSubstr("is for a target whose vocab_size is 64, but this one's is 128"));
  EXPECT_THAT(Refusal([](Checkpoint& /*folder*/, Json& json) { json["gated"] = true; }),
              HasSubstr("gated is true, and what that changes is not known"));
  for (const char* name : {"1.0.linear.weight", "1.1.linear.bias", "2.0.linear.bias"}) {
    EXPECT_THAT(Refusal([&](Checkpoint& folder, Json& /*json*/) { folder.tensors.erase(name); }),
                HasSubstr(std::string("lacks tensor ") + name));
  }
  EXPECT_THAT(
      Refusal([](Checkpoint& folder, Json& /*json*/) { folder.tensors.erase("0.2.weight"); }),
      HasSubstr("lacks tensor 0.2.weight, the matrix of the first of Medusa's heads"));
  EXPECT_THAT(
      Refusal([](Checkpoint& folder, Json& /*json*/) { folder.tensors.erase("3.2.weight"); }),
      HasSubstr("which is none of its 3 heads of Medusa"));
  EXPECT_THAT(Refusal([](Checkpoint& folder, Json& /*json*/) {
                folder.tensors["1.3.linear.weight"] = folder.tensors["1.0.linear.weight"];
              }),
              HasSubstr("has tensor '1.3.linear.weight', which is none of its 5 heads"));
  EXPECT_THAT(Refusal([](Checkpoint& folder, Json& /*json*/) {
                folder.tensors["0.2.weight"].shape = {64, 64};
              }),
              HasSubstr("tensor 0.2.weight is [64, 64], but of heads for this target [128, 32]"));
  EXPECT_THAT(Refusal([](Checkpoint& folder, Json& /*json*/) { folder.others["odd"] = {}; }),
              HasSubstr("has tensor 'odd'"));
  EXPECT_THAT(Refusal([](Checkpoint& folder, Json& /*json*/) {
                folder.tensors["4.2.weight"].shape = {64, 64};
              }),
              HasSubstr("4.2.weight must have shape [128, 32]"));
  EXPECT_THAT(Refusal([](Checkpoint& folder, Json& /*json*/) {
                for (int i = 5; i < 64; ++i) {
                  folder.tensors[std::to_string(i) + ".2.weight"] = folder.tensors["0.2.weight"];
                }
              }),
              HasSubstr("has 64 heads, but no more than 63 tokens are drafted"));
}

TEST_F(MedusaTest, IsToldFromAModelWithHeads) {
  EXPECT_TRUE(IsToldFromAModelWith("medusa_num_heads"));
}

// Medusa-2: the heads of a model that was trained with them.
TEST_F(MedusaTest, MayLieAmongTheTensorsOfAModel) {
  const Checkpoint heads = Open("medusa-two-blocks");
  const auto alone = Read("medusa-two-blocks");
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  for (const std::string prefix : {"medusa_head.", "medusa_lm_head."}) {
    Checkpoint model = Open("target");
    Json json = Json::Parse(model.config.json);
    json["medusa_num_heads"] = 4;
    model.config.json = json.dump();
    for (const auto& [name, tensor] : heads.tensors) model.tensors.emplace(prefix + name, tensor);
    EXPECT_FALSE(IsLearnedDraft(model));
    const auto own = ReadDrafter("medusa", model, target_, target_config_);
    ASSERT_TRUE(own.ok()) << own.error().message;
    EXPECT_EQ(own->config.feature, alone->config.feature);
    EXPECT_EQ(own->config.parallel, alone->config.parallel);
    EXPECT_EQ(own->checkpoint.tensors.size(), heads.tensors.size());
    ASSERT_EQ(own->notes.size(), 1U);
    EXPECT_THAT(own->notes[0], HasSubstr("medusa_num_heads is 4, but the tensors have 5"));
    model.tensors.erase(prefix + "0.2.weight");
    EXPECT_THAT(ReadDrafter("medusa", model, target_, target_config_).error().message,
                HasSubstr("lacks tensor " + prefix + "0.2.weight, the matrix of the first"));
    model.tensors.erase(prefix + "1.2.weight");
    model.tensors.emplace(prefix + "0.2.weight", *heads.Find("0.2.weight"));
    EXPECT_THAT(ReadDrafter("medusa", model, target_, target_config_).error().message,
                HasSubstr("has tensor '" + prefix + "1.0.linear.bias', which is none of its 1"));
  }
}

TEST_F(MedusaTest, OfAModelMustBeThere) {
  EXPECT_THAT(ReadDrafter("medusa", Open("target"), target_, target_config_).error().message,
              HasSubstr("has no heads of Medusa beside the model: tensors medusa_head.*, or"));
  EXPECT_THAT(ReadDrafter("odd", Open("target"), target_, target_config_).error().message,
              HasSubstr("what drafts in a model's files is mtp or medusa, not 'odd'"));
}

}  // namespace
}  // namespace foretoken
