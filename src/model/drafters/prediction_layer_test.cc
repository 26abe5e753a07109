#include "model/drafters/prediction_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/families/read_config.h"
#include "model/open_checkpoint.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

std::filesystem::path Golden() {
  return std::filesystem::path(FORETOKEN_SOURCE_DIR) / "tests/golden";
}

class PredictionLayerTest : public testing::Test {
 protected:
  static Checkpoint Layer() { return Checkpoint::Open(Golden() / "drafters/mtp-qwen3_5").value(); }

  // Of a golden folder of a layer, changed in memory.
  Result<LearnedDraft> With(const std::function<void(Checkpoint&)>& change) {
    Checkpoint folder = Layer();
    change(folder);
    return ReadPredictionLayer(std::move(folder), target_, config_);
  }
  static std::string Message(const Result<LearnedDraft>& draft) {
    return draft.ok() ? "no error" : draft.error().message;
  }

  Checkpoint target_ = OpenCheckpoint(Golden() / "families/qwen3_5", "").value();
  ModelConfig config_ = *ReadModelConfig(target_);
};

TEST_F(PredictionLayerTest, IsAnAttentionLayerOfItsModel) {
  const auto draft = With([](Checkpoint& /*folder*/) {});
  ASSERT_TRUE(draft.ok()) << Message(draft);
  ASSERT_EQ(draft->config.layer_count(), 1);
  EXPECT_FALSE(draft->config.layers[0].is_recurrent());
  EXPECT_TRUE(draft->config.feature.leaves_normed);
  EXPECT_EQ(draft->translation, nullptr);
  EXPECT_EQ(draft->checkpoint.Find("head.weight")->data, target_.Find("embedding.weight")->data);
}

// The model's own tensors lie beside it.
TEST_F(PredictionLayerTest, LooksAtNothingElseInTheFolder) {
  const Checkpoint model = Checkpoint::Open(Golden() / "families/qwen3_5").value();
  EXPECT_FALSE(HasPredictionLayer(model));
  EXPECT_TRUE(HasPredictionLayer(Layer()));
  EXPECT_FALSE(IsLearnedDraft(Layer()));
  const auto draft = With([&](Checkpoint& folder) {
    folder.tensors.insert(model.tensors.begin(), model.tensors.end());
    folder.tensors["visual.odd.weight"] = {WeightFormat::kF32, {1}, nullptr};
    folder.others["visual.steps"] = {"I64", {}};
  });
  EXPECT_TRUE(draft.ok()) << Message(draft);
}

TEST_F(PredictionLayerTest, RefusesWhatIsNotWhole) {
  const TensorView odd{WeightFormat::kF32, {1}, nullptr};
  EXPECT_THAT(Message(OpenPredictionLayer(Golden() / "families/qwen3_5", target_, config_)),
              HasSubstr("qwen3_5: has no layer that guesses further tokens, tensors mtp.*"));
  for (const char* name : {"mtp.norm.weight", "mtp.pre_fc_norm_hidden.weight",
                           "mtp.layers.0.self_attn.q_proj.weight"}) {
    EXPECT_THAT(Message(With([name](Checkpoint& folder) { folder.tensors.erase(name); })),
                HasSubstr(std::string("lacks tensor ") + name));
  }
  EXPECT_THAT(Message(With([&](Checkpoint& folder) { folder.tensors["mtp.odd.weight"] = odd; })),
              HasSubstr("has tensor 'mtp.odd.weight', which is none of a layer that guesses"));
  EXPECT_THAT(Message(With([](Checkpoint& folder) { folder.others["mtp.odd"] = {}; })),
              HasSubstr("has tensor 'mtp.odd', which is none of a layer that guesses"));
  EXPECT_THAT(Message(With([&](Checkpoint& folder) {
                folder.tensors["mtp.layers.1.input_layernorm.weight"] = odd;
              })),
              HasSubstr("mtp.layers.1.input_layernorm.weight is none that"));
  const Checkpoint other = OpenCheckpoint(Golden() / "drafters/target", "").value();
  EXPECT_THAT(Message(ReadPredictionLayer(Layer(), other, *ReadModelConfig(other))),
              HasSubstr("which of llama models is not supported"));
}

}  // namespace
}  // namespace foretoken
