#include "draft/draft_model.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr std::size_t kFirstCapacity = 4096;  // Tokens; like a sequence's first block list.

std::int64_t PoolBlocks(int sequences, int context, int scratch) {
  return sequences * (BlocksFor(context) + BlocksFor(scratch));
}

}  // namespace

DraftModel::DraftModel(LlamaModel* llama_model, int max_sequences, int context, int scratch)
    : model(llama_model),
      max_context(std::min(context, llama_model->config().max_positions)),
      pool(PoolBlocks(max_sequences, max_context, scratch), /*prefix_cache=*/false),
      kv(model->backend().AllocateKv(
          model->KvShapeFor(PoolBlocks(max_sequences, max_context, scratch)))),
      sampler(&model->backend(), model->config().vocabulary) {}

void DraftTrunk::SetPath(std::span<const Token> committed, std::span<const Token> proposal) {
  FT_CHECK(static_cast<std::int32_t>(committed.size()) >= committed_);
  Extend(committed.subspan(committed_), proposal);
}

void DraftTrunk::Extend(std::span<const Token> tokens, std::span<const Token> proposal) {
  if (path_.capacity() == 0) path_.reserve(kFirstCapacity);
  // The old path beyond the committed part is the old proposal: what it shares with the new path
  // keeps its KV.
  std::size_t at = committed_;
  bool same = true;
  const auto place = [&](Token token) {
    same = same && at < path_.size() && path_[at] == token;
    if (!same) kv_length = std::min(kv_length, static_cast<std::int32_t>(at));
    if (at < path_.size()) {
      path_[at] = token;
    } else {
      path_.push_back(token);
    }
    ++at;
  };
  for (const Token token : tokens) place(token);
  for (const Token token : proposal) place(token);
  committed_ += static_cast<std::int32_t>(tokens.size());
  path_.resize(at);
  kv_length = std::min(kv_length, length());
}

bool DraftTrunk::AppendRows(DraftModel& draft, std::int32_t end, std::int32_t logits_from,
                            ForwardBatch* batch) {
  if (!draft.pool.Reserve(end, &kv)) return false;
  const auto sequence = static_cast<std::int32_t>(batch->block_tables.size());
  batch->block_tables.push_back(kv.blocks.data());
  for (std::int32_t position = kv_length; position < end; ++position) {
    batch->rows.push_back({.token = path_[position],
                           .place = {.position = position,
                                     .slot = kv.SlotOf(position),
                                     .sequence = sequence,
                                     .trunk_length = position + 1,
                                     .tail_begin = 0},
                           .wants_logits = position >= logits_from});
  }
  return true;
}

}  // namespace foretoken
