#include "core/model/drafters/prediction_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/files/temporary_testing.h"
#include "core/model/families/family.h"
#include "core/model/families/read_config.h"
#include "core/model/golden_testing.h"
#include "core/model/open_checkpoint.h"
#include "core/tensor/tensor_testing.h"
#include "core/weights/gguf/gguf_testing.h"

namespace foretoken {
namespace {

using testing::HasSubstr;

class PredictionLayerTest : public testing::Test {
 protected:
  static Checkpoint Layer() {
    return Checkpoint::Open(GoldenFolder() / "drafters/mtp-qwen3_5").value();
  }

  // Reads a golden folder of a layer, changed in memory.
  Result<LearnedDraft> With(const std::function<void(Checkpoint&)>& change) {
    Checkpoint folder = Layer();
    change(folder);
    return ReadPredictionLayer(std::move(folder), target_, config_);
  }
  static std::string Message(const Result<LearnedDraft>& draft) {
    return draft.ok() ? "no error" : draft.error().message;
  }

  Checkpoint target_ = OpenCheckpoint(GoldenFolder() / "families/qwen3_5", "").value();
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
  const Checkpoint model = Checkpoint::Open(GoldenFolder() / "families/qwen3_5").value();
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
  EXPECT_THAT(Message(OpenPredictionLayer(GoldenFolder() / "families/qwen3_5", target_, config_)),
              HasSubstr("qwen3_5: has no layer that guesses further tokens: tensors mtp.*"));
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
  const Checkpoint other = OpenCheckpoint(GoldenFolder() / "drafters/target", "").value();
  EXPECT_THAT(Message(ReadPredictionLayer(Layer(), other, *ReadModelConfig(other))),
              HasSubstr("which of llama models is not supported"));
}

// The layer of DeepSeek's models lies behind their own layers, and mostly has their tables once
// more.
TEST(NumberedLayerTest, LiesBehindTheLayersOfItsModel) {
  const std::filesystem::path folder = GoldenFolder() / "drafters/mtp-deepseek_v3";
  const Checkpoint target = OpenCheckpoint(GoldenFolder() / "families/deepseek_v3", "").value();
  const ModelConfig config = *ReadModelConfig(target);
  const auto read = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint model = Checkpoint::Open(folder).value();
    EXPECT_TRUE(HasPredictionLayer(model));
    change(model);
    return ReadPredictionLayer(std::move(model), target, config);
  };
  const auto draft = read([](Checkpoint& /*model*/) {});
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_TRUE(draft->notes.empty());
  EXPECT_TRUE(draft->config.layers[0].attention.is_latent());
  EXPECT_TRUE(draft->config.layers[0].mlp.has_experts());
  EXPECT_EQ(draft->checkpoint.Find("head.weight")->data, target.Find("head.weight")->data);

  const std::vector<std::byte> numbers(std::size_t{128} * 32 * 4);
  const TensorView table{WeightFormat::kF32, {128, 32}, numbers.data()};
  const auto own = read([&](Checkpoint& model) {
    model.tensors["model.layers.2.shared_head.head.weight"] = table;
    model.tensors["model.layers.2.embed_tokens.weight"] = table;
    model.tensors["model.layers.3.eh_proj.weight"] = table;
  });
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_EQ(own->checkpoint.Find("head.weight")->data, numbers.data());
  EXPECT_EQ(own->checkpoint.Find("embedding.weight")->data, numbers.data());
  ASSERT_EQ(own->notes.size(), 1U);
  EXPECT_THAT(own->notes[0],
              HasSubstr("has 2 layers that guess further tokens: the first of them"));

  const auto message = [](const Result<LearnedDraft>& result) {
    return result.ok() ? "no error" : result.error().message;
  };
  EXPECT_THAT(
      message(read([&](Checkpoint& model) {
        model.tensors.erase("model.layers.2.eh_proj.weight");
        model.tensors["model.layers.3.eh_proj.weight"] = table;
      })),
      HasSubstr("is model.layers.3.*, but that of a target of 2 layers is model.layers.2.*"));
  EXPECT_THAT(message(read([](Checkpoint& model) {
                model.tensors.erase("model.layers.2.self_attn.kv_a_proj_with_mqa.weight");
              })),
              HasSubstr("lacks tensor model.layers.2.self_attn.kv_a_proj_with_mqa.weight"));
  EXPECT_THAT(
      message(read([&](Checkpoint& model) { model.tensors["model.layers.2.odd.weight"] = table; })),
      HasSubstr("'model.layers.2.odd.weight', which is none of a layer that guesses"));
}

// The golden layer as llama.cpp's converter writes it behind the model's four: gains are whole
// there.
class InGguf : public PredictionLayerTest {
 protected:
  static constexpr std::uint32_t kF32 = 0;

  static GgufBuilder File(const std::string& layer) {
    const std::map<std::string, std::string> names = {
        {"mtp.fc", "nextn.eh_proj"},
        {"mtp.pre_fc_norm_embedding", "nextn.enorm"},
        {"mtp.pre_fc_norm_hidden", "nextn.hnorm"},
        {"mtp.norm", "nextn.shared_head_norm"},
        {"mtp.layers.0.input_layernorm", "attn_norm"},
        {"mtp.layers.0.post_attention_layernorm", "post_attention_norm"},
        {"mtp.layers.0.self_attn.q_proj", "attn_q"},
        {"mtp.layers.0.self_attn.k_proj", "attn_k"},
        {"mtp.layers.0.self_attn.v_proj", "attn_v"},
        {"mtp.layers.0.self_attn.o_proj", "attn_output"},
        {"mtp.layers.0.self_attn.q_norm", "attn_q_norm"},
        {"mtp.layers.0.self_attn.k_norm", "attn_k_norm"},
        {"mtp.layers.0.mlp.gate_proj", "ffn_gate"},
        {"mtp.layers.0.mlp.up_proj", "ffn_up"},
        {"mtp.layers.0.mlp.down_proj", "ffn_down"}};
    GgufBuilder builder;
    builder.Text("general.architecture", "qwen35");
    for (const auto& [name, view] : Layer().tensors) {
      const std::string& named = names.at(name.substr(0, name.rfind('.')));
      std::vector<float> values(view.elements());
      LoadElements(view, 0, view.elements(), values.data());
      for (float& value : values) value += view.shape.size() == 1 ? 1 : 0;
      builder.Tensor(layer + named + ".weight", {view.shape.rbegin(), view.shape.rend()}, kF32,
                     {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    }
    return builder;
  }
  Result<LearnedDraft> Open(const GgufBuilder& file) {
    const std::string path = (folder_.path() / "m.gguf").string();
    file.Write(path);
    return OpenPredictionLayer(path, target_, config_);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(InGguf, IsTheLayerOfTheFolder) {
  const auto draft = Open(File("blk.4."));
  ASSERT_TRUE(draft.ok()) << Message(draft);
  const auto of_folder = With([](Checkpoint& /*folder*/) {});
  EXPECT_EQ(draft->config.feature, of_folder->config.feature);
  const Checkpoint& ours = draft->checkpoint;
  EXPECT_FALSE(ours.gains_less_one);
  EXPECT_EQ(ours.tensors.size(), of_folder->checkpoint.tensors.size());
  for (const auto& [name, expected] : of_folder->checkpoint.tensors) {
    const TensorView* view = ours.Find(name);
    ASSERT_NE(view, nullptr) << name;
    ASSERT_EQ(view->shape, expected.shape) << name;
    const float more = expected.shape.size() == 1 ? 1 : 0;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
      ASSERT_EQ(LoadElement(*view, i), LoadElement(expected, i) + more) << name;
    }
  }
}

TEST_F(InGguf, RefusesWhatIsNotWhole) {
  EXPECT_THAT(Message(Open(File("blk.7."))),
              HasSubstr("is blk.7.*, but that of a target of 4 layers is blk.4.*"));
  const float number = 0;
  const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof(number));
  GgufBuilder odd = File("blk.4.");
  odd.Tensor("blk.4.nextn.odd.weight", {1}, kF32, bytes);
  EXPECT_THAT(Message(Open(odd)), HasSubstr("'blk.4.nextn.odd.weight', which is none of"));
  GgufBuilder joined;
  joined.Tensor("blk.4.nextn.eh_proj.weight", {1}, kF32, bytes);
  EXPECT_THAT(Message(Open(joined)), HasSubstr("nextn.e"));
  EXPECT_THAT(Message(Open(GgufBuilder())), HasSubstr("has no layer that guesses further tokens"));
}

// The layer of GLM 4.5 lies behind the model's two layers, its tensors as those of other layers.
TEST(GlmInGgufTest, IsTheLayerOfTheFolder) {
  const Checkpoint target = OpenCheckpoint(GoldenFolder() / "families/glm4_moe", "").value();
  const ModelConfig config = *ReadModelConfig(target);
  const auto of_folder =
      OpenPredictionLayer(GoldenFolder() / "drafters/mtp-glm4_moe", target, config);
  ASSERT_TRUE(of_folder.ok()) << of_folder.error().message;
  const std::map<std::string, std::string> beside = {
      {"feature.join.weight", "nextn.eh_proj.weight"},
      {"feature.token_norm.weight", "nextn.enorm.weight"},
      {"feature.norm.weight", "nextn.hnorm.weight"},
      {"output_norm.weight", "nextn.shared_head_norm.weight"}};
  GgufBuilder builder;
  builder.Text("general.architecture", "glm4moe");
  for (const auto& [name, view] : of_folder->checkpoint.tensors) {
    if (name == "embedding.weight" || name == "head.weight") continue;
    const auto found = beside.find(name);
    const std::string in_file =
        found != beside.end() ? found->second : NameInFile(kGlm4Moe, /*gguf=*/true, name).substr(6);
    std::vector<float> values(view.elements());
    LoadElements(view, 0, view.elements(), values.data());
    builder.Tensor("blk.2." + in_file, {view.shape.rbegin(), view.shape.rend()}, 0,
                   {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "m.gguf").string();
  builder.Write(path);
  const auto draft = OpenPredictionLayer(path, target, config);
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft->config.feature, of_folder->config.feature);
  EXPECT_EQ(draft->checkpoint.tensors.size(), of_folder->checkpoint.tensors.size());
  for (const auto& [name, expected] : of_folder->checkpoint.tensors) {
    const TensorView* view = draft->checkpoint.Find(name);
    ASSERT_NE(view, nullptr) << name;
    ASSERT_EQ(view->shape, expected.shape) << name;
    for (std::int64_t i = 0; i < expected.elements(); ++i) {
      ASSERT_EQ(LoadElement(*view, i), LoadElement(expected, i)) << name;
    }
  }
}

}  // namespace
}  // namespace foretoken
