#include "core/model/heads/read_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/heads/golden_heads_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class HydraTest : public GoldenHeads {
 protected:
  std::string RefusalOf(const std::string& name, const char* field, const Json& value) {
    return Refusal(name, [&](Checkpoint& /*folder*/, Json& json) { json[field] = value; });
  }
};

// Weights that are not the target's.
std::int64_t OwnWeights(const LearnedDraft& draft) {
  std::int64_t weights = 0;
  for (const auto& [name, tensor] : draft.checkpoint.tensors) {
    if (name != "embedding.weight") weights += tensor.elements();
  }
  return weights;
}

TEST_F(HydraTest, ReadsHeadsAndTheLayerBeforeThem) {
  EXPECT_TRUE(IsLearnedDraft(Open("hydra")));
  const auto plain = Read("hydra");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->config.feature.heads, 6);
  EXPECT_EQ(plain->config.feature.head_blocks, 1);
  EXPECT_EQ(plain->config.layer_count(), 0);
  EXPECT_FALSE(plain->config.parallel.there());
  EXPECT_THAT(plain->notes, IsEmpty());
  const auto prefix = Read("hydra-prefix");
  ASSERT_TRUE(prefix.ok()) << prefix.error().message;
  EXPECT_EQ(prefix->config.layer_count(), 1);
  EXPECT_EQ(prefix->config.feature.head_blocks, 3);
  const std::int64_t embeddings = 128 * 32;
  for (const LearnedDraft* draft : {&*plain, &*prefix}) {
    EXPECT_EQ(draft->config.parameters(), OwnWeights(*draft) + embeddings);
  }
}

// What lies before the last layers.
TEST_F(HydraTest, ReadsTheStateThatItIsToldOf) {
  for (const int offset : {1, 7}) {
    const auto draft = With(
        "hydra", [&](Checkpoint& /*folder*/, Json& json) { json["hidden_state_offset"] = offset; });
    ASSERT_TRUE(draft.ok()) << draft.error().message;
    EXPECT_EQ(draft->config.feature.points, std::vector{7 - offset});
  }
  EXPECT_THAT(RefusalOf("hydra", "hidden_state_offset", 8), HasSubstr("hidden_state_offset"));
}

TEST_F(HydraTest, CountsHeadsInTheTensors) {
  const auto two = With("hydra", [](Checkpoint& folder, Json& json) {
    json["hydra_num_layers"] = 2;
    std::erase_if(folder.tensors, [](const auto& tensor) {
      return tensor.first.find("mlp.0.") == std::string::npos &&
             tensor.first.find("mlp.1.") == std::string::npos &&
             tensor.first.find("head.0.") == std::string::npos &&
             tensor.first.find("head.1.") == std::string::npos;
    });
  });
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(two->config.feature.heads, 2);
  ASSERT_EQ(two->notes.size(), 2U);
  EXPECT_THAT(two->notes[0], HasSubstr("hydra_num_heads is 6, but the tensors have 2"));
  EXPECT_THAT(two->notes[1], HasSubstr("hydra_num_layers is 2, but the tensors have 1"));
}

TEST_F(HydraTest, RefusesWhatItDoesNotCompute) {
  EXPECT_THAT(RefusalOf("hydra", "hydra_head_arch", "eagle-attn"),
              HasSubstr("hydra_head_arch is 'eagle-attn', but only mlp and prefix-mlp are"));
  EXPECT_THAT(RefusalOf("hydra", "grounded_heads", false),
              HasSubstr("grounded_heads is not true: heads that read no tokens are Medusa's"));
  EXPECT_THAT(RefusalOf("hydra", "hidden_size", 64),
              HasSubstr("is for a target whose hidden_size is 64, but this one's is 32"));
  EXPECT_THAT(RefusalOf("hydra", "gated", true), HasSubstr("gated is true, and what that"));
  EXPECT_THAT(RefusalOf("hydra-prefix", "hydra_head_arch", "mlp"),
              HasSubstr("lacks tensor hydra_lm_head.0.weight, of the first of Hydra's heads"));
  EXPECT_THAT(RefusalOf("hydra", "hydra_head_arch", "prefix-mlp"),
              HasSubstr("lacks tensor hydra_lm_head.0.1.weight, of the first of Hydra's heads"));
  for (const char* name :
       {"hydra_mlp.2.1.linear.weight", "hydra_mlp.0.3.linear.bias",
        "hydra_mlp.3.1.res_connection.bias", "hydra_lm_head.1.1.bias",
        "prefix_embeding_layer.norm.weight", "prefix_embeding_layer.layers.0.mlp.up_proj.weight"}) {
    EXPECT_THAT(Refusal("hydra-prefix",
                        [&](Checkpoint& folder, Json& /*json*/) { folder.tensors.erase(name); }),
                HasSubstr(std::string("lacks tensor ") + name));
  }
  EXPECT_THAT(Refusal("hydra",
                      [](Checkpoint& folder, Json& /*json*/) {
                        folder.tensors["odd"] = folder.tensors["hydra_lm_head.0.bias"];
                      }),
              HasSubstr("has tensor 'odd', which is none of its 6 heads of Hydra"));
  EXPECT_THAT(Refusal("hydra",
                      [](Checkpoint& folder, Json& /*json*/) {
                        folder.tensors["hydra_lm_head.0.weight"].shape = {64, 64};
                      }),
              HasSubstr("hydra_lm_head.0.weight is [64, 64], but of heads for this target"));
  EXPECT_THAT(Refusal("hydra",
                      [](Checkpoint& folder, Json& /*json*/) {
                        folder.tensors["hydra_mlp.1.0.linear.weight"].shape = {32, 64};
                      }),
              HasSubstr("hydra_mlp.1.0.linear.weight must have shape [32, 96]"));
  target_config_.family = "qwen2";
  EXPECT_THAT(Read("hydra-prefix").error().message,
              HasSubstr("whose layer is that of a llama model, but the target is a qwen2 model"));
  EXPECT_TRUE(Read("hydra").ok());
}

TEST_F(HydraTest, IsToldFromAModelWithHeads) {
  EXPECT_TRUE(IsToldFromAModelWith("hydra_num_heads"));
}

}  // namespace
}  // namespace foretoken
