#include "model/heads/hydra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "model/families/read_config.h"
#include "model/open_checkpoint.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::filesystem::path Folder(const std::string& name) {
  return std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden/drafters" / name;
}

// Golden folders of heads, changed in memory.
class HydraTest : public testing::Test {
 protected:
  using Change = std::function<void(Checkpoint&, Json&)>;

  static Checkpoint Open(const std::string& name) { return Checkpoint::Open(Folder(name)).value(); }

  Result<LearnedDraft> With(const std::string& name, const Change& change) {
    Checkpoint folder = Open(name);
    Json json = Json::parse(folder.config.json);
    change(folder, json);
    folder.config.json = json.dump();
    return ReadLearnedDraft(std::move(folder), target_, target_config_);
  }
  std::string Refusal(const std::string& name, const Change& change) {
    const auto draft = With(name, change);
    return draft.ok() ? "no error" : draft.error().message;
  }
  std::string RefusalOf(const std::string& name, const char* field, const Json& value) {
    return Refusal(name, [&](Checkpoint& /*folder*/, Json& json) { json[field] = value; });
  }

  Checkpoint target_ = OpenCheckpoint(Folder("target"), "").value();
  ModelConfig target_config_ = *ReadModelConfig(target_);
};

// Weights of `tensors` that are the drafter's own.
std::int64_t OwnWeights(const LearnedDraft& draft) {
  std::int64_t weights = 0;
  for (const auto& [name, tensor] : draft.checkpoint.tensors) {
    if (name != "embedding.weight") weights += tensor.elements();
  }
  return weights;
}

TEST_F(HydraTest, ReadsHeadsAndTheLayerBeforeThem) {
  EXPECT_TRUE(IsLearnedDraft(Open("hydra")));
  const auto plain = OpenDraft(Folder("hydra"), target_, target_config_);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->config.feature.heads, 6);
  EXPECT_EQ(plain->config.feature.head_blocks, 1);
  EXPECT_EQ(plain->config.layer_count(), 0);
  EXPECT_FALSE(plain->config.parallel.there());
  EXPECT_THAT(plain->notes, IsEmpty());
  const auto prefix = OpenDraft(Folder("hydra-prefix"), target_, target_config_);
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
  EXPECT_THAT(Refusal("hydra-prefix", [](Checkpoint& /*folder*/, Json& /*json*/) {}),
              HasSubstr("whose layer is that of a llama model, but the target is a qwen2 model"));
  EXPECT_TRUE(With("hydra", [](Checkpoint& /*folder*/, Json& /*json*/) {}).ok());
}

// A model that has heads beside all else runs as one.
TEST_F(HydraTest, IsToldFromAModelWithHeads) {
  Checkpoint model = Open("target");
  Json json = Json::parse(model.config.json);
  json["hydra_num_heads"] = 5;
  model.config.json = json.dump();
  EXPECT_FALSE(IsLearnedDraft(model));
}

}  // namespace
}  // namespace foretoken
