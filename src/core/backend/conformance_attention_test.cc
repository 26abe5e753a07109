// Attention and KV of every backend against the reference, and that results do not depend on where
// keys lie or what is computed with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "core/backend/attention_testing.h"

namespace foretoken {
namespace {

using ::testing::Pointwise;

class AttentionTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, AttentionTest, testing::ValuesIn(AttentionSubjects()),
                         [](const auto& param) { return param.param.Name(); });

std::vector<Subject> PortableAttentionSubjects() {
  std::vector<Subject> subjects = AttentionSubjects();
  std::erase_if(subjects, [](const Subject& subject) { return subject.quant == nullptr; });
  return subjects;
}

// What has the reference's bits.
class PortableAttentionTest : public BackendTest {};

INSTANTIATE_TEST_SUITE_P(All, PortableAttentionTest, testing::ValuesIn(PortableAttentionSubjects()),
                         [](const auto& param) { return param.param.Name(); });

// In the last ones keys hold the values: so many numbers as the last number says.
const HeadShape kHeadShapes[] = {{9, 3, 64},  {8, 8, 8},      {8, 4, 8},     {4, 1, 48},
                                 {2, 2, 128}, {4, 1, 40, 32}, {4, 2, 72, 40}};

// What layers of some models do: see a few positions only, and the first ones with them, bound
// scores, let a sink take its share.
enum class Rule { kPlain, kWindow, kAnchors, kSelf, kCap, kSinks, kAll };
constexpr Rule kRules[] = {Rule::kPlain, Rule::kWindow, Rule::kAnchors, Rule::kSelf,
                           Rule::kCap,   Rule::kSinks,  Rule::kAll};

void Apply(Rule rule, AttentionCase* c) {
  if (rule == Rule::kSelf) c->rule.window = 1;
  if (rule == Rule::kWindow || rule == Rule::kAll) c->rule.window = 40;
  if (rule == Rule::kAnchors) c->rule.window = 9;
  if (rule == Rule::kAnchors || rule == Rule::kAll) c->rule.anchors = 4;
  if (rule == Rule::kCap || rule == Rule::kAll) c->rule.score_cap = 1.5F;
  if (rule == Rule::kSinks || rule == Rule::kAll) c->rule.sinks = c->sinks.data();
}

TEST_P(AttentionTest, AttentionAgreesWithReference) {
  auto backend = Make();
  auto reference = Reference();
  const Placement trunk{{7, 2, 9, 0}, 100, {}};
  const Placement mixed{{7, 2, 9, 0}, 70, Range(340, 370)};
  for (const HeadShape& heads : kHeadShapes) {
    std::vector<float> plain;
    for (const Rule rule : kRules) {
      AttentionCase c(heads, 100, 5, heads.head_dim / 4 * 2);
      Apply(rule, &c);
      for (const Placement& placement : {trunk, mixed}) {
        const auto out = AttendAt(backend.get(), c, placement, Range(0, 100));
        const std::string question =
            fmt::format("{}, {} and {} heads of {}, {}, {}", NumericsName(), heads.heads,
                        heads.kv_heads, heads.head_dim, static_cast<int>(rule), placement.trunk);
        const auto& expected =
            Once(question, [&] { return AttendAt(reference.get(), c, placement, Range(0, 100)); });
        const KvFormat kv = GetParam().numerics.kv;
        const float usual = kv == KvFormat::kBF16 ? 0.02F : kv == KvFormat::kF32 ? 1e-4F : 1e-3F;
        ASSERT_THAT(out, Pointwise(NearBy(Tolerance(usual)), expected))
            << heads.head_dim << ", rule " << static_cast<int>(rule);
        if (rule == Rule::kPlain) plain = out;
        EXPECT_EQ(out == plain, rule == Rule::kPlain);
      }
    }
  }
}

// With a window of one a row's output is its own value.
TEST_P(AttentionTest, AWindowOfOneSeesItself) {
  const HeadShape heads{2, 1, 32};
  AttentionCase c(heads, 70, 5);
  Apply(Rule::kSelf, &c);
  const auto out = AttendAt(Make().get(), c, {{7, 2, 9}, 70, {}}, Range(0, 70));
  for (int p = 0; p < 70; ++p) {
    for (int i = 0; i < 64; ++i) {
      const float value = c.qkv[p * 128 + 96 + i % 32];
      ASSERT_NEAR(out[p * 64 + i], value, 0.01F * std::fabs(value) + 0.03F);
    }
  }
}

// Numbers that a block of them cannot hold exactly, and such as count as zero.
TEST_P(PortableAttentionTest, KeysAndValuesOfAnySize) {
  const HeadShape heads{4, 2, 48};
  AttentionCase c(heads, 70, 9);
  for (int p = 0; p < 70; ++p) {
    float* const keys = c.qkv.data() + p * heads.row_width() + heads.heads * heads.head_dim;
    const float scales[] = {1, 1e-31F, 1e-38F, 0, 1e4F, -3};
    for (int i = 0; i < 2 * heads.kv_heads * heads.head_dim; ++i) {
      // Different in the blocks of a head; now and then one number outweighs its block.
      keys[i] *= scales[(p + i / 32) % 6] * (i % 53 == p % 53 ? 100.0F : 1.0F);
    }
  }
  const Placement placement{{7, 2, 9}, 70, {}};
  const auto out = AttendAt(Make().get(), c, placement, Range(0, 70));
  EXPECT_THAT(out,
              Pointwise(testing::Eq(), AttendAt(Reference().get(), c, placement, Range(0, 70))));
}

// What a format rounds is what it should: little, but not nothing.
TEST_P(AttentionTest, FormatsOfKvRoundAsTheyShould) {
  const KvFormat format = GetParam().numerics.kv;
  const auto exact = MakeReferenceBackend(Precision::kF32);
  const HeadShape heads{9, 3, 64};
  const AttentionCase c(heads, 100, 5);
  const Placement placement{{7, 2, 9, 0}, 100, {}};
  const auto out = AttendAt(Make().get(), c, placement, Range(0, 100));
  const auto expected = AttendAt(exact.get(), c, placement, Range(0, 100));
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    error += std::pow(out[i] - expected[i], 2);
    power += std::pow(expected[i], 2);
  }
  const double relative = std::sqrt(error / power);
  if (format == KvFormat::kF32) {
    EXPECT_LT(relative, 1e-5);
  } else {
    EXPECT_GT(relative, 1e-3);
    EXPECT_LT(relative, 1e-2);
  }
  const auto bytes = [&](KvFormat kept) {
    return MakeCpuBackend(*AvailableKernels().front(), nullptr, {Precision::kBF16, kept})
        ->KvBytes({.layers = {{3, 64}, {}, {1, 128}, {1, 64}}, .blocks = 5});
  };
  EXPECT_EQ(bytes(KvFormat::kBF16), 2U * 2 * (3 + 2 + 1) * 64 * 5 * kBlockSize);
  EXPECT_EQ(MakeCpuBackend(*AvailableKernels().front(), nullptr, Precision::kBF16)
                ->KvBytes({.layers = {{1, 576, 512}}, .blocks = 5}),
            2U * 576 * 5 * kBlockSize);
  EXPECT_EQ(bytes(KvFormat::kF32), 2 * bytes(KvFormat::kBF16));
  EXPECT_EQ(bytes(KvFormat::kQ8_0), bytes(KvFormat::kBF16) / 16 * 9);
}

TEST_P(AttentionTest, RotateAgreesWithReference) {
  auto backend = Make();
  auto reference = Reference();
  for (const HeadShape& heads : kHeadShapes) {
    const AttentionCase c(heads, 40, 6);
    const Placement placement{{1, 0}, 40, {}};
    const KvShape shape{LayersOf(heads), kStoreBlocks};
    KvStore kv = backend->AllocateKv(shape);
    EXPECT_EQ(kv.keys.bytes() + kv.values.bytes(), backend->KvBytes(shape));
    KvStore plain = reference->AllocateKv(shape);
    EXPECT_THAT(
        StoreAll(backend.get(), c, placement, &kv),
        Pointwise(NearBy(Tolerance(1e-5F)), StoreAll(reference.get(), c, placement, &plain)));
  }
}

// Trunk or tail, whatever blocks and slots, alone or with others, on one thread or two: one result.
TEST_P(AttentionTest, AttentionDoesNotDependOnPlacementBatchOrThreads) {
  ThreadPool pool({0, 1});
  auto backend = Make();
  auto threaded = Make(&pool);
  std::vector<std::int32_t> scattered;
  for (int i = 0; i < 100; ++i) scattered.push_back(383 - (i * 7) % 101);
  const std::vector<Placement> placements = {
      {{3, 4, 5, 6}, 100, {}},
      {{6, 1, 0, 2}, 100, {}},
      {{2, 0}, 64, Range(300, 336)},
      {{2, 0, 1}, 70, {scattered.begin(), scattered.begin() + 30}},
      {{}, 0, scattered},
      {{5, 1, 0, 3}, 97, {200, 290, 201}},
  };
  for (int shape = 0; shape < 2 * std::ssize(kHeadShapes); ++shape) {
    const HeadShape& heads = kHeadShapes[shape / 2];
    AttentionCase c(heads, 100, 8);
    Apply(shape % 2 == 0 ? Rule::kPlain : Rule::kAll, &c);
    const std::size_t width = Size(heads.heads * heads.value_dim());
    std::vector<float> alone;
    const StoredCase first(backend.get(), c, placements[0]);
    for (int p = 0; p < 100; ++p) {
      const auto row = first.AttendAt({p});
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (std::size_t i = 0; i < placements.size(); ++i) {
      for (Backend* each : {backend.get(), threaded.get()}) {
        const StoredCase stored(each, c, placements[i]);
        for (const int begin : {0, 1, 60, 84, 99}) {
          const auto out = stored.AttendAt(Range(begin, 100));
          ASSERT_TRUE(SameBits(out.data(), alone.data() + begin * width, out.size()))
              << "placement " << i << " from " << begin << ", head_dim " << heads.head_dim;
        }
      }
    }
  }
}

// A tree: branches after position 70, each with its own tail, in one call with a second sequence.
void CheckTree(Backend* backend, Rule rule) {
  const HeadShape heads{9, 3, 64};
  const std::size_t width = Size(heads.heads * heads.head_dim);
  const std::int64_t row_width = heads.row_width();
  const int trunk = 70;
  const int depth = 6;
  const std::vector<std::int32_t> blocks = {4, 1, 3};
  const std::int32_t* table = blocks.data();
  const std::int32_t* const tables[] = {table, table};
  KvStore kv = backend->AllocateKv({LayersOf(heads), kStoreBlocks});
  AttentionCase base(heads, trunk + depth, 20);
  Apply(rule, &base);
  StoreAll(backend, base, {blocks, trunk, Range(180, 180 + depth)}, &kv);
  std::vector<RowPlace> rows;
  std::vector<float> qkv;
  std::vector<float> expected;
  std::vector<std::int32_t> tails;
  for (int branch = 0; branch < 3; ++branch) {
    // The branch replaces the qkv rows after the trunk; alone it is a plain chain.
    AttentionCase chain(heads, trunk + depth, 30 + static_cast<std::uint32_t>(branch));
    std::copy_n(base.qkv.begin(), trunk * row_width, chain.qkv.begin());
    chain.sinks = base.sinks;
    Apply(rule, &chain);
    const auto alone =
        AttendAt(backend, chain, {{0, 1, 2}, trunk + depth, {}}, Range(trunk, trunk + depth));
    expected.insert(expected.end(), alone.begin(), alone.end());
    const auto tail_begin = static_cast<std::int32_t>(tails.size());
    std::vector<RowPlace> branch_rows;
    for (int i = 0; i < depth; ++i) {
      const std::int32_t slot = 200 + (branch * depth + i) * 5;
      tails.push_back(slot);
      branch_rows.push_back({trunk + i, slot, branch == 2 ? 1 : 0, trunk, tail_begin});
    }
    rows.insert(rows.end(), branch_rows.begin(), branch_rows.end());
    qkv.insert(qkv.end(), chain.qkv.begin() + trunk * row_width, chain.qkv.end());
  }
  const BatchPlan plan{rows, tables, tails};
  backend->RotateAndStore(&base.rope, plan, heads, 1, qkv.data(), kv);
  std::vector<float> out(rows.size() * width);
  backend->Attention(plan, heads, base.rule, 1, qkv.data(), kv, out.data());
  EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size()));

  // The same with the rows of the first two branches interleaved level by level.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < depth; ++i) order.insert(order.end(), {i, depth + i});
  std::vector<RowPlace> mixed_rows;
  std::vector<float> mixed_qkv;
  for (const std::size_t row : order) {
    mixed_rows.push_back(rows[row]);
    mixed_qkv.insert(mixed_qkv.end(), qkv.begin() + static_cast<std::ptrdiff_t>(row) * row_width,
                     qkv.begin() + static_cast<std::ptrdiff_t>(row + 1) * row_width);
  }
  std::vector<float> mixed(mixed_rows.size() * width);
  backend->Attention({mixed_rows, tables, tails}, heads, base.rule, 1, mixed_qkv.data(), kv,
                     mixed.data());
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_TRUE(SameBits(mixed.data() + i * width, expected.data() + order[i] * width, width)) << i;
  }
}

TEST_P(AttentionTest, TreeRowsEqualTheirChains) {
  for (const Rule rule : {Rule::kPlain, Rule::kWindow, Rule::kAnchors, Rule::kAll}) {
    CheckTree(Make().get(), rule);
  }
}

TEST_P(AttentionTest, CopyKvMovesEveryLayer) {
  auto backend = Make();
  for (const HeadShape& heads : kHeadShapes) {
    const AttentionCase c(heads, 50, 11);
    const Placement from{{2, 0}, 50, {}};
    const Placement to{{5, 1}, 33, Range(320, 337)};
    KvStore kv = backend->AllocateKv({LayersOf(heads), kStoreBlocks});
    const auto qkv = StoreAll(backend.get(), c, from, &kv);
    std::vector<KvMove> moves;
    for (int p = 0; p < 50; ++p) {
      moves.push_back({from.SlotOf(p), 380});  // By way of another slot: moves go in order.
      moves.push_back({380, to.SlotOf(p)});
    }
    backend->CopyKv(kv, moves);
    std::vector<RowPlace> rows;
    for (int p = 0; p < 50; ++p) rows.push_back({p, to.SlotOf(p), 0, std::min(p + 1, 33), 0});
    std::vector<float> out(Size(50 * heads.heads * heads.value_dim()));
    const std::int32_t* table = to.blocks.data();
    backend->Attention({rows, {&table, 1}, to.tail}, heads, c.rule, 1, qkv.data(), kv, out.data());
    const auto expected = AttendAt(backend.get(), c, from, Range(0, 50));
    EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size()));
  }
}

// The heads of DeepSeek, whose keys are wide and shared by all queries: of its small models, of the
// large ones, and a number that no kernel's rows divide.
TEST_P(AttentionTest, WideKeysThatHoldTheirValues) {
  const KvFormat kv = GetParam().numerics.kv;
  const float usual = kv == KvFormat::kBF16 ? 0.02F : kv == KvFormat::kF32 ? 1e-4F : 1e-3F;
  for (const int queries : {16, 71, 128}) {
    const AttentionCase c({queries, 1, 576, 512}, 40, 12);
    const Placement placement{{3, 1}, 33, Range(100, 107)};
    const std::vector<int> last = Range(30, 40);
    const auto backend = Make();
    const StoredCase stored(backend.get(), c, placement);
    const auto together = stored.AttendAt(last);
    const auto& expected = Once(fmt::format("{}, {} heads", NumericsName(), queries),
                                [&] { return AttendAt(Reference().get(), c, placement, last); });
    EXPECT_THAT(together, Pointwise(NearBy(Tolerance(usual)), expected));
    const auto alone = stored.AttendAt({39});
    EXPECT_TRUE(SameBits(alone.data(), &together[together.size() - alone.size()], alone.size()));
  }
}

// Rows without keys and values read what a layer keeps that had them, and keep nothing.
TEST_P(AttentionTest, RowsOfQueriesReadAnotherLayer) {
  auto backend = Make();
  for (const HeadShape& heads : kHeadShapes) {
    const AttentionCase c(heads, 40, 15);
    const Placement placement{{2, 0}, 40, {}};
    KvStore kv = backend->AllocateKv({LayersOf(heads), kStoreBlocks});
    StoreAll(backend.get(), c, placement, &kv);
    HeadShape only = heads;
    only.queries_only = true;
    std::vector<float> queries;
    std::vector<RowPlace> rows;
    for (int p = 0; p < 40; ++p) {
      const auto row = c.qkv.begin() + p * heads.row_width();
      queries.insert(queries.end(), row, row + only.row_width());
      rows.push_back({p, placement.SlotOf(p), 0, p + 1, 0});
    }
    const std::int32_t* table = placement.blocks.data();
    const BatchPlan plan{rows, {&table, 1}, {}};
    backend->RotateAndStore(&c.rope, plan, only, 0, queries.data(), kv);
    const auto expected = AttendAt(backend.get(), c, placement, Range(0, 40));
    std::vector<float> out(expected.size());
    backend->Attention(plan, only, c.rule, 1, queries.data(), kv, out.data());
    EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size())) << heads.head_dim;
  }
}

// What other sequences left in the lanes beyond a row's position does not reach its result.
TEST_P(AttentionTest, AttentionIgnoresLanesBeyondTheRow) {
  auto backend = Make();
  const HeadShape heads{4, 2, 32};
  const AttentionCase c(heads, 64, 13);
  const Placement placement{{0, 1}, 64, {}};
  const auto expected = AttendAt(backend.get(), c, placement, {40});
  AttentionCase other(heads, 64, 14);
  std::copy_n(c.qkv.begin(), 41 * heads.row_width(), other.qkv.begin());
  const auto out = AttendAt(backend.get(), other, placement, {40});
  EXPECT_TRUE(SameBits(out.data(), expected.data(), out.size()));
}

}  // namespace
}  // namespace foretoken
