#include "core/model/families/model_part.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace foretoken {
namespace {

constexpr int kPartLayers = 2;

ModelPart OfFolder(std::string_view name) {
  return PartOf(kQwen3Next, /*gguf=*/false, kPartLayers, name);
}
ModelPart OfGguf(std::string_view name) {
  return PartOf(kDeepseekV2, /*gguf=*/true, kPartLayers, name);
}

TEST(ModelPart, OfFolders) {
  EXPECT_EQ(OfFolder("model.layers.1.self_attn.q_proj.weight"), ModelPart::kText);
  EXPECT_EQ(OfFolder("language_model.model.layers.1.self_attn.q_proj.weight"), ModelPart::kText);
  EXPECT_EQ(OfFolder("model.layers.0.rotary_emb.inv_freq"), ModelPart::kText);
  EXPECT_EQ(OfFolder("lm_head.weight"), ModelPart::kText);
  EXPECT_EQ(OfFolder("model.layers.1.odd.weight"), ModelPart::kUnknown);
  EXPECT_EQ(OfFolder("model.language_model.layers.1.odd.weight"), ModelPart::kUnknown);
  EXPECT_EQ(OfFolder("model.layers.99999999999.q.weight"), ModelPart::kUnknown);
  EXPECT_EQ(OfFolder("model.layers.2.self_attn.q_proj.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfFolder("mtp.layers.0.mlp.gate.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfFolder("model.mtp_layers.0.mlp.gate.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfFolder("medusa_head.0.0.linear.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfFolder("model.extra_heads.0.mlp.up_proj.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfFolder("model.visual.blocks.0.attn.qkv.weight"), ModelPart::kVision);
  EXPECT_EQ(OfFolder("multi_modal_projector.linear.weight"), ModelPart::kVision);
  EXPECT_EQ(OfFolder("audio_tower.conv.weight"), ModelPart::kAudio);
  EXPECT_EQ(OfFolder("score.weight"), ModelPart::kBeside);
}

// What is neither of the text model nor of a tower might matter.
TEST(ModelPart, OfGgufFiles) {
  EXPECT_EQ(OfGguf("blk.1.attn_norm.weight"), ModelPart::kText);
  EXPECT_EQ(OfGguf("rope_freqs.weight"), ModelPart::kText);
  EXPECT_EQ(OfGguf("blk.1.attn_rot_embd.weight"), ModelPart::kText);
  EXPECT_EQ(OfGguf("blk.2.attn_norm.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfGguf("blk.2.nextn.eh_proj.weight"), ModelPart::kPrediction);
  EXPECT_EQ(OfGguf("blk.1.odd.weight"), ModelPart::kUnknown);
  EXPECT_EQ(OfGguf("score.weight"), ModelPart::kUnknown);
  EXPECT_EQ(OfGguf("cls.output.weight"), ModelPart::kBeside);
  // Ollama's files have towers in them.
  EXPECT_EQ(OfGguf("v.blk.0.attn_q.weight"), ModelPart::kVision);
  EXPECT_EQ(OfGguf("v.blk.7.attn_q.weight"), ModelPart::kVision);
  EXPECT_EQ(OfGguf("v.patch_embd.weight"), ModelPart::kVision);
  EXPECT_EQ(OfGguf("mm.0.weight"), ModelPart::kVision);
  EXPECT_EQ(OfGguf("mm.input_projection.weight"), ModelPart::kVision);
  EXPECT_EQ(OfGguf("a.blk.0.attn_q.weight"), ModelPart::kAudio);
  EXPECT_EQ(OfGguf("mm.a.mlp.1.weight"), ModelPart::kAudio);
}

TEST(ModelPart, LayersBehindTheLastOneGuessOrAreOrdinary) {
  UnusedPart part{
      ModelPart::kPrediction,
      {"mtp.fc.weight", "model.layers.2.enorm.weight", "model.layers.2.self_attn.q_proj.weight"}};
  EXPECT_EQ(part.OfOrdinaryLayer(/*gguf=*/false), "");
  part.tensors.emplace_back("language_model.model.layers.3.mlp.up_proj.weight");
  EXPECT_EQ(part.OfOrdinaryLayer(/*gguf=*/false), part.tensors.back());
  const UnusedPart file{ModelPart::kPrediction,
                        {"blk.2.nextn.eh_proj.weight", "blk.3.ffn_up.weight"}};
  EXPECT_EQ(file.OfOrdinaryLayer(/*gguf=*/true), "blk.3.ffn_up.weight");
}

TEST(ModelPart, IsSummedUp) {
  TensorMap tensors;
  const TensorView tensor{WeightFormat::kF32, {1000, 1000}, nullptr};
  for (const char* name : {"lm_head.weight", "visual.a.weight", "visual.b.weight", "mtp.fc.weight",
                           "b.weight", "a.weight"}) {
    tensors.emplace(name, tensor);
  }
  const std::vector<std::byte> steps(2'000'000);
  const auto parts = UnusedParts(kQwen3Next, /*gguf=*/false, kPartLayers, tensors,
                                 {{"visual.steps", {"I64", steps}}});
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].Sentence(),
            "the vision tower (3 tensors, 10.0 MB) is not used: images are refused");
  EXPECT_EQ(parts[1].part, ModelPart::kPrediction);
  EXPECT_EQ(parts[2].Sentence(),
            "what is none of the text model (2 tensors, 8.0 MB, 'a.weight' first) is not used");
}

}  // namespace
}  // namespace foretoken
