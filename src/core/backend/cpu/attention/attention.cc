#include "core/backend/cpu/attention/attention.h"

#include <cstring>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace foretoken::cpu {

// The chunk of keys that a row reads; rows with an equal source may be computed together.
struct AttentionWorker::Source {
  KvChunk chunk;
  bool gathered = false;
  std::int32_t trunk_length = 0;  // These two are compared only if gathered.
  std::int32_t tail_begin = 0;

  bool SharedWith(const RowPlace& row) const {
    return gathered && row.trunk_length == trunk_length && row.tail_begin == tail_begin;
  }
};

namespace {

// The slot of logical position `position`.
std::int32_t SlotOf(const BatchPlan& plan, const RowPlace& row, std::int32_t position) {
  if (position < row.trunk_length) {
    const std::int32_t block = plan.block_tables[row.sequence][position / kBlockSize];
    return block * kBlockSize + position % kBlockSize;
  }
  return plan.tail_slots[row.tail_begin + position - row.trunk_length];
}

}  // namespace

KvStore::Begin BeginOf(const KvShape& shape, std::size_t layers, KvFormat format) {
  KvStore::Begin begin;
  for (const KvLayer& layer : std::span(shape.layers).first(layers)) {
    const std::size_t bytes =
        Size(shape.BlocksOf(layer) * layer.kv_heads) * ChunkBytes(format, layer.head_dim);
    begin.keys += bytes;
    if (layer.latent == 0) begin.values += bytes;
  }
  return begin;
}

void AttentionWorker::Grow(int queries, const HeadShape& heads) {
  const std::size_t n = queries;
  const std::size_t key_width = PadToChunk(heads.head_dim);
  const std::size_t width = PadToChunk(heads.value_dim());
  q_.Grow(n * key_width * sizeof(float));
  out_.Grow(n * width * sizeof(float));
  sums_.Grow(n * kPanel * sizeof(float));
  maxima_.Grow((n + kPanel) * sizeof(float));
  hidden_.Grow(n * sizeof(std::int32_t));
  seen_.Grow(n * sizeof(std::int32_t));
  gathered_keys_.Grow(kBlockSize * key_width * sizeof(float));
  (heads.latent > 0 ? values_ : gathered_values_).Grow(kBlockSize * width * sizeof(float));
}

void AttentionWorker::Clear(int queries, const HeadShape& heads) {
  const std::size_t n = queries;
  const std::size_t width = PadToChunk(heads.value_dim());
  state_.queries = queries;
  state_.key_dim = heads.head_dim;
  state_.value_dim = heads.value_dim();
  state_.q = q_.data();
  state_.out = out_.as<float>();
  state_.sums = sums_.as<float>();
  state_.maxima = maxima_.as<float>();
  state_.hidden = hidden_.as<std::int32_t>();
  state_.seen = seen_.as<std::int32_t>();
  std::memset(state_.out, 0, n * width * sizeof(float));
  std::memset(state_.sums, 0, n * kPanel * sizeof(float));
}

// A sink is as if a score without a value had been seen before all others.
void AttentionWorker::Begin(const AttentionRule& rule, int group, int kv_head) {
  state_.scale = static_cast<float>(std::numbers::log2e * rule.scale);
  state_.cap = 0;
  if (rule.score_cap != 0) {
    state_.cap_inverse = static_cast<float>(2 * rule.scale / double{rule.score_cap});
    state_.cap = static_cast<float>(std::numbers::log2e * double{rule.score_cap});
    state_.scale = 1;
  }
  std::fill_n(state_.maxima, state_.queries, -std::numeric_limits<float>::infinity());
  if (rule.sinks == nullptr) return;
  for (int query = 0; query < state_.queries; ++query) {
    const float sink = rule.sinks[kv_head * group + query % group];
    state_.maxima[query] = sink * static_cast<float>(std::numbers::log2e);
    state_.sums[static_cast<std::ptrdiff_t>(query) * kPanel] = 1;
  }
}

void AttentionWorker::Run(const AttentionCall& call, int begin, int end, int kv_head) {
  const HeadShape& heads = call.heads;
  const int group = heads.heads / heads.kv_heads;
  Clear((end - begin) * group, heads);
  Begin(call.rule, group, kv_head);
  std::int32_t first = std::numeric_limits<std::int32_t>::max();
  std::int32_t last = 0;
  for (int row = begin; row < end; ++row) {
    const std::int32_t position = call.plan.rows[row].position;
    first = std::min(first, call.rule.WindowBegin(position));
    last = std::max(last, position);
    const float* const q =
        call.qkv + row * heads.row_width() + std::int64_t{kv_head} * group * heads.head_dim;
    for (int h = 0; h < group; ++h) {
      ops_.pack_query(state_, (row - begin) * group + h, q + std::int64_t{h} * heads.head_dim);
    }
  }
  const RowPlace& furthest = call.plan.rows[end - 1];
  const int chunks = last / kBlockSize + 1;
  // Chunks with anchors, and those from where the first window begins.
  const int anchored = BlocksFor(call.rule.anchors);
  const int first_chunk = anchored > 0 ? 0 : first / kBlockSize;
  const auto behind = [anchored, window = first / kBlockSize](int chunk) {
    return chunk + 1 < anchored ? chunk + 1 : std::max(chunk + 1, window);
  };
  for (int chunk = first_chunk; chunk < chunks; chunk = behind(chunk)) {
    // The next chunk comes from memory while this one is computed; a head's blocks do not lie next
    // to each other, so the machine does not see the stream by itself.
    KvChunk next = {};
    if (behind(chunk) < chunks) {
      next = TrunkChunk(call, furthest, kv_head, behind(chunk));
    } else if (kv_head + 1 < heads.kv_heads) {
      next = TrunkChunk(call, furthest, kv_head + 1, first_chunk);
    }
    Chunk(call, begin, end, kv_head, chunk, next);
  }
  for (int row = begin; row < end; ++row) {
    float* const to = call.out + (std::int64_t{row} * heads.heads + kv_head * group) *
                                     std::int64_t{heads.value_dim()};
    for (int h = 0; h < group; ++h) {
      finish_(state_, (row - begin) * group + h, to + std::int64_t{h} * heads.value_dim());
    }
  }
}

KvChunk AttentionWorker::TrunkChunk(const AttentionCall& call, const RowPlace& row, int kv_head,
                                    int chunk) {
  const std::int32_t first = chunk * kBlockSize;
  if (first >= row.trunk_length) return {};
  return call.layout.ChunkOf(SlotOf(call.plan, row, first), kv_head);
}

// Walks the rows that reach into `chunk`, computing neighbours with the same source together.
void AttentionWorker::Chunk(const AttentionCall& call, int begin, int end, int kv_head, int chunk,
                            KvChunk next_chunk) {
  const int group = call.heads.heads / call.heads.kv_heads;
  const std::int32_t first_position = chunk * kBlockSize;
  state_.anchors = std::clamp(call.rule.anchors - first_position, 0, kBlockSize);
  const auto place = [&](int row) -> const RowPlace& { return call.plan.rows[row]; };
  const auto reaches = [&](int row) {
    const std::int32_t position = place(row).position;
    const std::int32_t window = call.rule.WindowBegin(position);
    return position >= first_position &&
           (state_.anchors > 0 || window < first_position + kBlockSize);
  };
  gathered_any_ = false;
  for (int row = begin; row < end;) {
    if (!reaches(row)) {
      ++row;
      continue;
    }
    const Source source = Find(call, place(row), kv_head, chunk);
    int next = row;
    for (; next < end && reaches(next); ++next) {
      if (next > row && !source.SharedWith(place(next))) {
        if (source.gathered) break;
        const Source other = Find(call, place(next), kv_head, chunk);
        if (other.gathered || other.chunk.keys != source.chunk.keys) break;
      }
      const std::int32_t seen = std::min(place(next).position - first_position + 1, kBlockSize);
      const std::int32_t window = call.rule.WindowBegin(place(next).position);
      const std::int32_t hidden = std::clamp(window - first_position, 0, kBlockSize);
      std::fill_n(state_.hidden + (next - begin) * group, group, hidden);
      std::fill_n(state_.seen + (next - begin) * group, group, seen);
      // Later rows of a shared tail may reach further than the first one's gathered lanes.
      if (next > row && source.gathered) Find(call, place(next), kv_head, chunk);
    }
    ops_.attend(state_, (row - begin) * group, (next - begin) * group,
                WithValues(call, source.chunk), next_chunk);
    next_chunk = {};
    row = next;
  }
}

AttentionWorker::Source AttentionWorker::Find(const AttentionCall& call, const RowPlace& row,
                                              int kv_head, int chunk) {
  const std::int32_t first = chunk * kBlockSize;
  const int count = std::min(row.position - first + 1, kBlockSize);
  std::int32_t slots[kBlockSize];
  bool in_place = first + count <= row.trunk_length;
  slots[0] = SlotOf(call.plan, row, first);
  if (!in_place) {
    in_place = slots[0] % kBlockSize == 0;
    for (int lane = 1; lane < count; ++lane) {
      slots[lane] = SlotOf(call.plan, row, first + lane);
      in_place = in_place && slots[lane] == slots[0] + lane;
    }
  }
  if (in_place) {
    return {call.layout.ChunkOf(slots[0], kv_head)};
  }
  return {Gather(call, slots, count, kv_head), true, row.trunk_length, row.tail_begin};
}

KvChunk AttentionWorker::WithValues(const AttentionCall& call, KvChunk chunk) {
  if (call.heads.latent == 0) return chunk;
  chunk.values = values_.as<char>();
  ops_.values_of_keys(chunk.keys, call.heads.head_dim, call.heads.latent, chunk.values);
  return chunk;
}

// Starts from the whole block of the first lane and then replaces lanes that differ from what the
// scratch chunk holds: neighbouring rows differ in few.
KvChunk AttentionWorker::Gather(const AttentionCall& call, const std::int32_t* slots, int count,
                                int kv_head) {
  const bool latent = call.heads.latent > 0;
  const KvChunk to = {gathered_keys_.as<char>(), latent ? nullptr : gathered_values_.as<char>()};
  if (!gathered_any_) {
    gathered_any_ = true;
    const KvChunk from = call.layout.ChunkOf(slots[0], kv_head);
    std::memcpy(to.keys, from.keys, call.layout.chunk_bytes);
    if (!latent) std::memcpy(to.values, from.values, call.layout.chunk_bytes);
    const std::int32_t base = slots[0] / kBlockSize * kBlockSize;
    for (int lane = 0; lane < kBlockSize; ++lane) gathered_slots_[lane] = base + lane;
  }
  for (int lane = 0; lane < count; ++lane) {
    if (gathered_slots_[lane] == slots[lane]) continue;
    gathered_slots_[lane] = slots[lane];
    ops_.copy_kv(call.layout.ChunkOf(slots[lane], kv_head), slots[lane] % kBlockSize,
                 call.heads.head_dim, to, lane);
  }
  return to;
}

}  // namespace foretoken::cpu
