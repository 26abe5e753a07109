#include "core/model/measure/text_taps.h"

#include <numeric>

#include "base/check.h"

namespace foretoken {
namespace {

std::vector<std::int32_t> Numbers(std::int64_t count) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TextTaps::TextTaps(Model* model, const TapShape& taps, int longest)
    : model_(model),
      blocks_(Numbers(BlocksFor(longest))),
      kv_(model->backend().AllocateKv(model->KvShapeFor(std::ssize(blocks_), taps))) {}

std::span<const BFloat16> TextTaps::Read(std::span<const Token> tokens) {
  FT_CHECK(std::ssize(tokens) <= kv_.shape.blocks * kBlockSize, "{} tokens", tokens.size());
  for (std::size_t begin = 0; begin < tokens.size(); begin += kPassRows) {
    batch_.Clear();
    batch_.block_tables.push_back(blocks_.data());
    for (std::size_t i = begin; i < std::min(tokens.size(), begin + kPassRows); ++i) {
      const auto position = static_cast<std::int32_t>(i);
      batch_.rows.push_back({.token = tokens[i],
                             .place = {.position = position,
                                       .slot = position,
                                       .sequence = 0,
                                       .trunk_length = position + 1,
                                       .tail_begin = 0},
                             .wants_logits = false});
    }
    (void)model_->Forward(batch_, kv_);
  }
  return {kv_.taps.Row(0), tokens.size() * kv_.taps.shape.width()};
}

}  // namespace foretoken
