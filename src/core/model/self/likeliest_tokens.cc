#include "core/model/self/likeliest_tokens.h"

#include <algorithm>
#include <numeric>

namespace foretoken {
namespace {

// The rows of a pass over `text` from token `begin` on, which lie in the first slots.
void FillBatch(const AskedText& text, std::size_t begin, const std::vector<std::int32_t>& blocks,
               ForwardBatch* batch) {
  batch->Clear();
  batch->block_tables.push_back(blocks.data());
  const std::size_t end = std::min(text.tokens.size() - 1, begin + kPassRows);
  for (std::size_t i = begin; i < end; ++i) {
    const auto position = static_cast<std::int32_t>(i);
    batch->rows.push_back({.token = text.tokens[i],
                           .place = {.position = position,
                                     .slot = position,
                                     .sequence = 0,
                                     .trunk_length = position + 1,
                                     .tail_begin = 0},
                           .wants_logits = position + 1 >= text.first});
  }
}

}  // namespace

std::vector<Token> LikeliestTokens(Model* model, std::span<const AskedText> texts) {
  std::size_t longest = 1;
  for (const AskedText& text : texts) longest = std::max(longest, text.tokens.size());
  std::vector<std::int32_t> blocks(BlocksFor(static_cast<std::int64_t>(longest)));
  std::iota(blocks.begin(), blocks.end(), 0);
  KvStore kv = model->backend().AllocateKv(model->KvShapeFor(std::ssize(blocks)));
  const std::int64_t vocabulary = model->config().vocabulary;
  std::vector<Token> likeliest;
  ForwardBatch batch;
  for (const AskedText& text : texts) {
    for (std::size_t begin = 0; begin + 1 < text.tokens.size(); begin += kPassRows) {
      FillBatch(text, begin, blocks, &batch);
      const Logits logits = model->Forward(batch, kv);
      const auto wanted = std::ranges::count_if(batch.rows, &ForwardRow::wants_logits);
      for (std::ptrdiff_t row = 0; row < wanted; ++row) {
        const float* const of_row = logits.values + row * vocabulary;
        likeliest.push_back(
            static_cast<Token>(std::max_element(of_row, of_row + vocabulary) - of_row));
      }
    }
  }
  return likeliest;
}

}  // namespace foretoken
