#include "core/model/measure/text_taps.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/model/config/named_shapes.h"
#include "core/model/model_testing.h"

namespace foretoken {
namespace {

std::vector<Token> Text(int tokens, int salt) {
  std::vector<Token> text;
  for (int i = 0; i < tokens; ++i) text.push_back((7 * i + i * i / 3 + salt) % 300);
  return text;
}

std::vector<BFloat16> Copy(std::span<const BFloat16> states) {
  return {states.begin(), states.end()};
}

TEST(TextTaps, AreTheStatesOfEveryPassOverTheText) {
  const auto backend = MakeReferenceBackend(Precision::kF32);
  const ModelConfig config = LlamaConfig({.hidden = 32,
                                          .intermediate = 64,
                                          .layers = 2,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 16,
                                          .vocabulary = 300,
                                          .max_positions = 512});
  const auto model = SyntheticModel(config, 3, backend.get());
  TextTaps taps(model.get(), {.points = {1, TapShape::kFinalState}, .hidden = 32}, 400);
  const std::vector<Token> text = Text(300, 1);
  const std::vector<BFloat16> states = Copy(taps.Read(text));
  ASSERT_EQ(states.size(), 300U * 64U);

  SequenceRunner runner(model.get(), 300);
  (void)runner.Append(text);
  for (std::size_t row = 0; row < text.size(); ++row) {
    for (std::size_t i = 0; i < 32; ++i) {
      ASSERT_EQ(states[row * 64 + 32 + i], FloatToBFloat16(model->states()[row * 32 + i]));
    }
  }
  // What was read before is forgotten.
  (void)taps.Read(Text(400, 2));
  EXPECT_EQ(Copy(taps.Read(text)), states);
  EXPECT_TRUE(
      std::ranges::equal(taps.Read(std::span(text).first(9)), std::span(states).first(9U * 64U)));
}

}  // namespace
}  // namespace foretoken
