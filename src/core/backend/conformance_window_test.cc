// Attention that sees a window of positions and anchors before it, on every backend: against the
// mask that these make, and where their keys lie in a store that has nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/attention_testing.h"

namespace foretoken {
namespace {

using ::testing::Pointwise;

class WindowConformance : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, WindowConformance, testing::ValuesIn(AttentionSubjects()),
                         [](const auto& param) { return param.param.Name(); });

struct Seen {
  int window;
  int anchors;
};

// Windows and anchors shorter than a block, as long and longer; such that meet and such that do
// not; more than the text has.
constexpr Seen kSeen[] = {{1, 0},  {1, 1},   {1, 4},   {5, 33},   {20, 4},  {32, 32},
                          {33, 4}, {40, 33}, {64, 32}, {150, 33}, {10, 70}, {9, 500}};

bool Sees(const Seen& seen, int row, int position) {
  return position <= row && (position < seen.anchors || position > row - seen.window);
}

// The softmax over what the mask leaves, of rotated rows.
std::vector<float> Masked(const AttentionCase& c, const std::vector<float>& qkv, const Seen& seen) {
  const HeadShape& heads = c.heads;
  const int group = heads.heads / heads.kv_heads;
  std::vector<float> out;
  for (int row = 0; row < c.positions; ++row) {
    for (int head = 0; head < heads.heads; ++head) {
      const float* const q = qkv.data() + row * heads.row_width() + head * heads.head_dim;
      std::vector<double> sum(heads.value_dim());
      double total = 0;
      for (int p = 0; p <= row; ++p) {
        if (!Sees(seen, row, p)) continue;
        const float* const k = qkv.data() + p * heads.row_width() +
                               (heads.heads + head / group) * std::int64_t{heads.head_dim};
        const float* const v =
            heads.latent > 0 ? k : k + std::int64_t{heads.kv_heads} * heads.head_dim;
        double score = 0;
        for (int i = 0; i < heads.head_dim; ++i) score += double{q[i]} * double{k[i]};
        const double weight = std::exp(c.rule.scale * score);
        total += weight;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * double{v[i]};
      }
      for (const double value : sum) out.push_back(static_cast<float>(value / total));
    }
  }
  return out;
}

constexpr int kPositions = 150;
constexpr HeadShape kWindowShapes[] = {{9, 3, 64}, {4, 1, 40, 32}};

std::vector<Placement> Placements() {
  std::vector<std::int32_t> scattered;
  for (int i = 0; i < kPositions; ++i) scattered.push_back(383 - (i * 7) % 151);
  return {{{7, 2, 9, 4, 6}, kPositions, {}},
          {{7, 2, 9, 4}, 110, Range(320, 320 + kPositions - 110)},
          {{1}, 3, {scattered.begin(), scattered.begin() + kPositions - 3}}};
}

TEST_P(WindowConformance, AnchorsAndAWindowAreAMask) {
  const auto backend = Make();
  const auto reference = Reference();
  const KvFormat kv = GetParam().numerics.kv;
  const float usual = kv == KvFormat::kBF16 ? 0.02F : kv == KvFormat::kF32 ? 1e-4F : 1e-3F;
  const float rounded = kv == KvFormat::kF32 && !portable() ? 1e-4F : 0.06F;
  for (const HeadShape& heads : kWindowShapes) {
    for (const Seen& seen : kSeen) {
      SCOPED_TRACE(testing::Message() << heads.head_dim << ", window " << seen.window << ", "
                                      << seen.anchors << " anchors");
      AttentionCase c(heads, kPositions, 23);
      c.rule.window = seen.window;
      c.rule.anchors = seen.anchors;
      const Placement place = Placements()[0];
      const StoredCase stored(backend.get(), c, place);
      const auto out = stored.AttendAt(Range(0, kPositions));
      const std::string question =
          fmt::format("{} dims, window {}, {} anchors", heads.head_dim, seen.window, seen.anchors);
      const auto& expected = Once(NumericsName() + question, [&] {
        return AttendAt(reference.get(), c, place, Range(0, kPositions));
      });
      ASSERT_THAT(out, Pointwise(NearBy(Tolerance(usual)), expected));
      // Most instruction sets turn rows to the same bits.
      const std::string_view bits(reinterpret_cast<const char*>(stored.rotated().data()),
                                  stored.rotated().size() * sizeof(float));
      const std::size_t of_rows = std::hash<std::string_view>()(bits);
      const auto& masked = Once(fmt::format("{}, rows {}", question, of_rows),
                                [&] { return Masked(c, stored.rotated(), seen); });
      ASSERT_THAT(out, Pointwise(NearBy(rounded), masked));
    }
  }
}

// Prompts read in parts, rows alone, and rows whose keys are scattered: one result.
TEST_P(WindowConformance, AnchorsDoNotDependOnPlacementOrBatch) {
  const auto backend = Make();
  for (const HeadShape& heads : kWindowShapes) {
    const auto width = Size(heads.heads * heads.value_dim());
    for (const Seen& seen : kSeen) {
      AttentionCase c(heads, kPositions, 24);
      c.rule.window = seen.window;
      c.rule.anchors = seen.anchors;
      const auto whole = AttendAt(backend.get(), c, Placements()[0], Range(0, kPositions));
      for (const Placement& placement : Placements()) {
        const StoredCase stored(backend.get(), c, placement);
        for (const auto& [begin, end] : {std::pair{0, 37}, {37, 70}, {64, 96}, {70, 150}}) {
          const auto out = stored.AttendAt(Range(begin, end));
          ASSERT_TRUE(SameBits(out.data(), &whole[Size(begin) * width], out.size()))
              << "from " << begin << ", window " << seen.window << ", " << seen.anchors;
        }
        for (const int row : {0, 3, 31, 32, 33, 100, 149}) {
          const auto out = stored.AttendAt({row});
          ASSERT_TRUE(SameBits(out.data(), &whole[Size(row) * width], out.size()))
              << row << ", window " << seen.window << ", " << seen.anchors;
        }
      }
    }
  }
}

// Where each position of a sequence lies in a store of few places, in which those that nobody sees
// any more have been used again.
class SparseStore {
 public:
  static constexpr int kPlaces = 6;

  SparseStore(Backend* backend, const AttentionCase& c)
      : backend_(backend), case_(c), places_(kStoreBlocks, -1) {
    KvShape shape{LayersOf(c.heads), kStoreBlocks};
    const std::size_t whole = backend->KvBytes(shape);
    shape.layers[1].windowed = true;
    shape.recent_blocks = kStoreBlocks;
    EXPECT_EQ(backend->KvBytes(shape), whole);
    shape.recent_blocks = kPlaces;
    EXPECT_LT(backend->KvBytes(shape), whole);
    kv_ = backend->AllocateKv(shape);
    EXPECT_EQ(kv_.keys.bytes() + kv_.values.bytes(), backend->KvBytes(shape));
    kv_.recent_places = places_;
  }

  /// Stores the rows one after the other; blocks behind the anchors take turns in four places.
  std::vector<float> Store(const Placement& placement) {
    std::vector<float> qkv = case_.qkv;
    const std::int32_t* const table = placement.blocks.data();
    const int kept = BlocksFor(case_.rule.anchors);
    int next = 0;
    for (int p = 0; p < case_.positions; ++p) {
      const std::int32_t slot = placement.SlotOf(p);
      std::int32_t& place = places_[slot / kBlockSize];
      if (place < 0) {
        place = next < kept ? next : kept + (next - kept) % 4;
        for (std::int32_t& other : places_) {
          if (&other != &place && other == place) other = -1;
        }
        ++next;
      }
      const RowPlace row{p, slot, 0, std::min(p + 1, placement.trunk), 0};
      backend_->RotateAndStore(&case_.rope, {{&row, 1}, {&table, 1}, placement.tail}, case_.heads,
                               1, qkv.data() + p * case_.heads.row_width(), kv_);
    }
    return qkv;
  }

  /// Takes the slots of a block through another one, which has a place, and back.
  void MoveThrough(std::int32_t other, std::int32_t first_slot, int count) {
    places_[other] = kPlaces - 1;
    for (int lane = 0; lane < count; ++lane) {
      const std::int32_t by = other * kBlockSize + lane;
      const KvMove moves[] = {{first_slot + lane, by}, {by, first_slot + lane}};
      backend_->CopyKv(kv_, moves);
    }
  }

  const KvStore& kv() const { return kv_; }

 private:
  Backend* backend_;
  const AttentionCase& case_;
  std::vector<std::int32_t> places_;
  KvStore kv_;
};

// A windowed layer's blocks may lie elsewhere than the others', and those between its anchors and
// its window nowhere.
TEST_P(WindowConformance, RecentBlocksAreFoundByTheirPlaces) {
  const auto backend = Make();
  const HeadShape heads{4, 2, 32};
  for (const int anchors : {0, 4}) {
    AttentionCase c(heads, 150, 17);
    c.rule.window = 40;
    c.rule.anchors = anchors;
    const Placement placement{{7, 2, 9, 4, 6}, 140, Range(320, 330)};
    const auto expected = AttendAt(backend.get(), c, placement, Range(130, 150));

    SparseStore store(backend.get(), c);
    const std::vector<float> qkv = store.Store(placement);
    store.MoveThrough(0, 320, 10);
    std::vector<RowPlace> rows;
    for (const int p : Range(130, 150)) {
      rows.push_back({p, placement.SlotOf(p), 0, std::min(p + 1, placement.trunk), 0});
    }
    const std::int32_t* const table = placement.blocks.data();
    std::vector<float> out(expected.size());
    backend->Attention({rows, {&table, 1}, placement.tail}, heads, c.rule, 1,
                       qkv.data() + 130 * heads.row_width(), store.kv(), out.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size())) << anchors;
  }
}

}  // namespace
}  // namespace foretoken
