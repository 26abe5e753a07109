#include "door/convert/same_model.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SameModel, NamesWhatDiffers) {
  const ModelConfig model = LlamaConfig({.hidden = 64,
                                         .intermediate = 96,
                                         .layers = 3,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_dim = 16,
                                         .vocabulary = 100,
                                         .max_positions = 128});
  EXPECT_EQ(DifferenceOf(model, model), "");
  ModelConfig other = model;
  other.layers[1].delta.key_heads = 1;
  EXPECT_EQ(DifferenceOf(model, other), "which layers have attention");
  other = model;
  other.layers[2].attention.window = 5;
  EXPECT_EQ(DifferenceOf(model, other), "which layers see a window");
  other = model;
  other.layers[0].attention.scale *= 2;
  EXPECT_EQ(DifferenceOf(model, other), "the scale of its scores");
}

}  // namespace
}  // namespace foretoken
