#include "core/kv/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/kv/kv_cache_testing.h"

namespace foretoken {
namespace {

std::vector<Token> Tokens(int count, Token first = 0) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Reserves, commits and publishes all of `tokens`, as a finished prefill does.
void Fill(KvCache& cache, std::span<const Token> tokens, SequenceKv* sequence) {
  const auto length = static_cast<std::int32_t>(tokens.size());
  ASSERT_TRUE(cache.Reserve(length, sequence));
  sequence->committed = length;
  cache.Publish(tokens, sequence);
}

void ExpectUsage(const KvCache& cache, std::int64_t free, std::int64_t cached, std::int64_t used) {
  const KvUsage usage = cache.Usage();
  EXPECT_EQ(usage.free, free);
  EXPECT_EQ(usage.cached, cached);
  EXPECT_EQ(usage.used, used);
  EXPECT_EQ(usage.total, free + cached + used);
  const Status status = cache.CheckIntegrity();
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

TEST(KvCache, ReservesByBlocksAndGivesBack) {
  KvCache cache({.blocks = 4}, true);
  SequenceKv sequence;
  ASSERT_TRUE(cache.Reserve(1, &sequence));
  ASSERT_TRUE(cache.Reserve(32, &sequence));
  ExpectUsage(cache, 3, 0, 1);
  ASSERT_TRUE(cache.Reserve(33, &sequence));
  ExpectUsage(cache, 2, 0, 2);
  EXPECT_EQ(sequence.SlotOf(33), sequence.blocks[1] * kBlockSize + 1);
  sequence.committed = 33;
  cache.Truncate(20, &sequence);
  EXPECT_EQ(sequence.committed, 20);
  ExpectUsage(cache, 3, 0, 1);
  cache.Release(&sequence);
  ExpectUsage(cache, 4, 0, 0);
  EXPECT_EQ(sequence.committed, 0);
}

TEST(KvCache, ForgetsATextAsFarAsNobodyNeedsIt) {
  KvCache cache({.blocks = 8, .window = 32, .recent_parts = 4}, true);
  const std::vector<Token> text = Tokens(96);
  std::vector<Token> other = text;
  other[70] = 9;  // Shares two blocks.
  SequenceKv first;
  SequenceKv second;
  Fill(cache, text, &first);
  EXPECT_EQ(cache.Forget({}, text), 0);  // In use.
  cache.Release(&first);
  Fill(cache, other, &second);
  cache.Release(&second);
  ExpectUsage(cache, 4, 4, 0);
  EXPECT_EQ(cache.Forget({.owner = 1}, text), 0);  // The text is another scope's.
  EXPECT_EQ(cache.Forget({}, text), 32);           // The other text goes on behind the rest.
  ExpectUsage(cache, 5, 3, 0);
  EXPECT_EQ(cache.Forget({}, other), 96);
  ExpectUsage(cache, 8, 0, 0);
}

TEST(KvCache, RefusesWithoutChangeWhenExhausted) {
  KvCache cache({.blocks = 3}, true);
  SequenceKv a;
  SequenceKv b;
  ASSERT_TRUE(cache.Reserve(40, &a));
  EXPECT_FALSE(cache.Reserve(64, &b));
  EXPECT_TRUE(b.blocks.empty());
  EXPECT_EQ(cache.Available(), 1);
  EXPECT_TRUE(cache.Reserve(32, &b));
  EXPECT_FALSE(cache.Reserve(65, &a));
  EXPECT_FALSE(cache.Reserve(std::numeric_limits<std::int32_t>::max(), &a));
  EXPECT_EQ(a.blocks.size(), 2U);
  ExpectUsage(cache, 0, 0, 3);
}

TEST(KvCache, FindsThePrefixAndLeavesATokenToCompute) {
  KvCache cache({.blocks = 16}, true);
  const std::vector<Token> tokens = Tokens(100);
  SequenceKv first;
  EXPECT_EQ(cache.MatchPrefix(tokens, &first), 0);
  Fill(cache, tokens, &first);
  EXPECT_EQ(first.published_blocks, 3);

  SequenceKv same;
  EXPECT_EQ(cache.MatchPrefix(tokens, &same), 96);
  EXPECT_EQ(same.committed, 96);
  EXPECT_TRUE(std::equal(same.blocks.begin(), same.blocks.end(), first.blocks.begin()));

  SequenceKv exact;
  EXPECT_EQ(cache.MatchPrefix(std::span(tokens).first(64), &exact), 32);
  SequenceKv longer;
  EXPECT_EQ(cache.MatchPrefix(std::span(tokens).first(65), &longer), 64);
  SequenceKv none;
  EXPECT_EQ(cache.MatchPrefix(std::span(tokens).first(32), &none), 0);
  EXPECT_EQ(cache.MatchPrefix({}, &none), 0);
  EXPECT_EQ(cache.MatchPrefix(std::span(tokens).subspan(32), &none), 0) << "a suffix is no prefix";

  for (SequenceKv* s : {&first, &same, &exact, &longer}) cache.Release(s);
  ExpectUsage(cache, 13, 3, 0);
  EXPECT_EQ(cache.MatchPrefix(tokens, &none), 96) << "released blocks stay cached";
}

TEST(KvCache, WithdrawsWhatNobodyElseRefersToOrGoesOnFrom) {
  KvCache cache({.blocks = 8}, true);
  const auto tokens = Tokens(100);
  auto other = tokens;
  other[40] = 7;  // In the second block.
  SequenceKv bad;
  SequenceKv good;
  Fill(cache, tokens, &bad);
  Fill(cache, other, &good);
  ExpectUsage(cache, 1, 0, 7);  // Four blocks each, of which they share the first.
  cache.Withdraw(&bad);
  EXPECT_EQ(bad.committed, 0);
  ExpectUsage(cache, 4, 0, 4);
  cache.Release(&good);
  ExpectUsage(cache, 5, 3, 0);
  EXPECT_EQ(cache.MatchPrefix(tokens, &bad), 32);  // The first block: another goes on from it.
  cache.Withdraw(&bad);
  ExpectUsage(cache, 5, 3, 0);
  ASSERT_EQ(cache.MatchPrefix(other, &good), 96);
  cache.Withdraw(&good);
  ExpectUsage(cache, 8, 0, 0);
}

TEST(KvCache, ScopesShareNothing) {
  const BlockHash collides = [](std::uint64_t, std::span<const Token>) { return std::uint64_t{7}; };
  for (const BlockHash hash : {BlockHash(HashBlock), collides}) {
    KvCache cache({.blocks = 32}, true, hash);
    const std::vector<Token> tokens = Tokens(100);
    SequenceKv alice{.scope = {.owner = 1, .adapter = {.index = 0, .scale = 2}}};
    Fill(cache, tokens, &alice);
    for (const KvScope& scope :
         {KvScope{}, KvScope{.owner = 2, .adapter = {0, 2}}, KvScope{.owner = 1},
          KvScope{.owner = 1, .adapter = {1, 2}}, KvScope{.owner = 1, .adapter = {0, 1}}}) {
      SequenceKv other{.scope = scope};
      EXPECT_EQ(cache.MatchPrefix(tokens, &other), 0);
      Fill(cache, tokens, &other);
      EXPECT_NE(other.blocks[0], alice.blocks[0]);
      cache.Release(&other);
    }
    cache.Release(&alice);
    SequenceKv again{.scope = {.owner = 1, .adapter = {.index = 0, .scale = 2}}};
    EXPECT_EQ(cache.MatchPrefix(tokens, &again), 96) << "its own are found";
    EXPECT_TRUE(cache.CheckIntegrity().ok());
    cache.Release(&again);
  }
}

TEST(KvCache, PublishesCommittedTokensOnly) {
  KvCache cache({.blocks = 8}, true);
  const std::vector<Token> tokens = Tokens(64);
  SequenceKv sequence;
  ASSERT_TRUE(cache.Reserve(64, &sequence));
  sequence.committed = 31;
  cache.Publish(tokens, &sequence);
  EXPECT_EQ(sequence.published_blocks, 0);
  sequence.committed = 32;
  cache.Publish(tokens, &sequence);
  EXPECT_EQ(sequence.published_blocks, 1);
}

TEST(KvCache, ChangesOverToTheBlockPublishedFirst) {
  KvCache cache({.blocks = 8}, true);
  const std::vector<Token> tokens = Tokens(70);
  SequenceKv a;
  SequenceKv b;
  ASSERT_TRUE(cache.Reserve(70, &b));
  Fill(cache, tokens, &a);
  Fill(cache, tokens, &b);
  EXPECT_EQ(a.blocks[0], b.blocks[0]);
  EXPECT_EQ(a.blocks[1], b.blocks[1]);
  EXPECT_NE(a.blocks[2], b.blocks[2]);
  ExpectUsage(cache, 4, 0, 4);
  cache.Release(&a);
  ExpectUsage(cache, 5, 0, 3);
}

TEST(KvCache, ReclaimsLeastRecentlyUsedContinuationsFirst) {
  KvCache cache({.blocks = 4}, true);
  SequenceKv old;
  Fill(cache, Tokens(64), &old);
  SequenceKv young;
  Fill(cache, Tokens(64, 1000), &young);
  cache.Release(&old);
  cache.Release(&young);
  ExpectUsage(cache, 0, 4, 0);

  SequenceKv other;
  ASSERT_TRUE(cache.Reserve(32, &other));
  SequenceKv match;
  EXPECT_EQ(cache.MatchPrefix(Tokens(65), &match), 32) << "the older chain lost its last block";
  cache.Release(&match);
  EXPECT_EQ(cache.MatchPrefix(Tokens(65, 1000), &match), 64);
  ASSERT_TRUE(cache.Reserve(64, &other)) << "held blocks are not reclaimed, the idle one is";
  EXPECT_FALSE(cache.Reserve(65, &other));
  cache.Release(&match);
  EXPECT_EQ(cache.MatchPrefix(Tokens(65), &match), 0);
  EXPECT_EQ(cache.MatchPrefix(Tokens(65, 1000), &match), 64);
  ExpectUsage(cache, 0, 0, 4);
}

TEST(KvCache, NeverHandsOutAPublishedBlockForWriting) {
  KvCache cache({.blocks = 8}, true);
  const std::vector<Token> tokens = Tokens(80);
  SequenceKv sequence;
  Fill(cache, tokens, &sequence);
  cache.Truncate(40, &sequence);
  EXPECT_EQ(sequence.committed, 32);
  EXPECT_EQ(sequence.published_blocks, 1);
  EXPECT_EQ(sequence.blocks.size(), 1U);
  ExpectUsage(cache, 6, 1, 1);
  SequenceKv match;
  EXPECT_EQ(cache.MatchPrefix(tokens, &match), 64);
  Fill(cache, tokens, &sequence);
  EXPECT_EQ(sequence.published_blocks, match.published_blocks);
  EXPECT_EQ(sequence.blocks[1], match.blocks[1]);
}

TEST(KvCache, WithoutPrefixCacheNothingIsKept) {
  KvCache cache({.blocks = 4}, false);
  SequenceKv sequence;
  Fill(cache, Tokens(70), &sequence);
  EXPECT_EQ(sequence.published_blocks, 0);
  cache.Release(&sequence);
  EXPECT_EQ(cache.MatchPrefix(Tokens(70), &sequence), 0);
  ExpectUsage(cache, 4, 0, 0);
}

TEST(KvCache, HashCollisionsNeverShare) {
  KvCache cache({.blocks = 16}, true,
                [](std::uint64_t, std::span<const Token>) { return std::uint64_t{7}; });
  SequenceKv a;
  Fill(cache, Tokens(64), &a);
  SequenceKv b;
  EXPECT_EQ(cache.MatchPrefix(Tokens(65, 1), &b), 0);
  // Equal second block and equal hashes below a different first block.
  std::vector<Token> mixed = Tokens(65);
  mixed[0] = 99;
  EXPECT_EQ(cache.MatchPrefix(mixed, &b), 0);
  Fill(cache, mixed, &b);
  SequenceKv match;
  EXPECT_EQ(cache.MatchPrefix(mixed, &match), 64);
  EXPECT_EQ(match.blocks, std::vector<std::int32_t>(b.blocks.begin(), b.blocks.begin() + 2));
  cache.Release(&match);
  EXPECT_EQ(cache.MatchPrefix(Tokens(65), &match), 64);
  EXPECT_EQ(match.blocks, a.blocks);
  ExpectUsage(cache, 11, 0, 5);
}

TEST(KvCache, BlockListsDoNotReallocateWithinCapacity) {
  KvCache cache({.blocks = 200}, true);
  SequenceKv sequence;
  ASSERT_TRUE(cache.Reserve(1, &sequence));
  const std::int32_t* before = sequence.blocks.data();
  for (std::int32_t length = 1; length <= 4096; ++length) {
    ASSERT_TRUE(cache.Reserve(length + 8, &sequence) || length > 4088);
    cache.Truncate(length, &sequence);
  }
  EXPECT_EQ(sequence.blocks.capacity(), 256U) << "grew once, for positions beyond 4096";
  cache.Truncate(1, &sequence);
  before = sequence.blocks.data();
  ASSERT_TRUE(cache.Reserve(4096, &sequence));
  EXPECT_EQ(sequence.blocks.data(), before);
}

void ExpectRecentUsage(const KvCache& cache, std::int64_t free, std::int64_t cached,
                       std::int64_t used) {
  const KvUsage usage = cache.RecentUsage();
  EXPECT_EQ(usage.free, free);
  EXPECT_EQ(usage.cached, cached);
  EXPECT_EQ(usage.used, used);
  const Status status = cache.CheckIntegrity();
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

// Grows a sequence to the length of `tokens` as prompts are read, 32 at a time.
void Grow(KvCache& cache, std::span<const Token> tokens, SequenceKv* sequence) {
  while (sequence->committed < std::ssize(tokens)) {
    const auto length = std::min<std::int64_t>(sequence->committed + 32, std::ssize(tokens));
    Fill(cache, tokens.first(length), sequence);
  }
}

TEST(KvCache, PassedRecentPartsAreGivenBack) {
  // A row sees its own block and two before it at most.
  KvCache cache({.blocks = 40, .window = 65, .recent_parts = 4}, false);
  SequenceKv sequence;
  for (std::int32_t length = 1; length <= 40 * kBlockSize; ++length) {
    ASSERT_TRUE(cache.Reserve(length, &sequence));
    sequence.committed = length;
    ASSERT_LE(cache.RecentUsage().used, 4);
    for (std::int32_t block = std::max(0, length - 65) / kBlockSize; block < length / kBlockSize;
         ++block) {
      ASSERT_GE(cache.recent_places()[sequence.blocks[block]], 0) << "at " << length;
    }
  }
  EXPECT_FALSE(cache.HasRoomFor(1)) << "all blocks are taken";
  cache.Release(&sequence);
  ExpectUsage(cache, 40, 0, 0);
  ExpectRecentUsage(cache, 4, 0, 0);
}

// As of the last blocks, and of the first ones for as long as the sequence lives.
TEST(KvCache, RecentPartsOfAnchorsStay) {
  KvCache cache({.blocks = 40, .window = 65, .recent_parts = 6, .anchors = 33}, false);
  SequenceKv sequence;
  for (std::int32_t length = 1; length <= 40 * kBlockSize; ++length) {
    ASSERT_TRUE(cache.Reserve(length, &sequence));
    sequence.committed = length;
    for (const std::int32_t block : {0, 1, (length - 1) / kBlockSize}) {
      if (block > (length - 1) / kBlockSize) continue;
      ASSERT_GE(cache.recent_places()[sequence.blocks[block]], 0) << "at " << length;
    }
  }
  ExpectRecentUsage(cache, 1, 0, 5);  // The parts of blocks 0 and 1, and of 37 to 39.
  cache.Truncate(39 * kBlockSize, &sequence);
  EXPECT_EQ(sequence.committed, 39 * kBlockSize);
  cache.Truncate(36 * kBlockSize, &sequence);
  EXPECT_EQ(sequence.committed, 0) << "blocks 34 and 35 would be seen";
  ExpectRecentUsage(cache, 6, 0, 0);
  // Where all that was passed holds anchors, nothing is missing.
  Grow(cache, Tokens(4 * kBlockSize), &sequence);
  EXPECT_EQ(sequence.first_recent, 2);
  cache.Truncate(kBlockSize + 1, &sequence);
  EXPECT_EQ(sequence.committed, kBlockSize + 1);
}

TEST(KvCache, APrefixWithAnchorsIsFoundWhereTheyAreStillThere) {
  KvCache cache({.blocks = 40, .window = 33, .recent_parts = 5, .anchors = 4}, true);
  const auto tokens = Tokens(10 * kBlockSize);
  SequenceKv first;
  Grow(cache, tokens, &first);
  // The parts of block 0, and of what a row behind block 9 sees.
  ExpectRecentUsage(cache, 0, 3, 2);
  SequenceKv second;
  auto longer = tokens;
  longer.push_back(1);
  EXPECT_EQ(cache.MatchPrefix(longer, &second), 10 * kBlockSize);
  ExpectRecentUsage(cache, 0, 3, 2);
  cache.Release(&first);
  cache.Release(&second);
  // Given back last, the part of block 0 is reclaimed last.
  ASSERT_TRUE(cache.Reserve(4 * kBlockSize, &second));
  cache.Release(&second);
  EXPECT_EQ(cache.MatchPrefix(longer, &first), kBlockSize);
  cache.Release(&first);
  ASSERT_TRUE(cache.Reserve(5 * kBlockSize, &second));
  cache.Release(&second);
  EXPECT_EQ(cache.MatchPrefix(longer, &first), 0);
}

TEST(KvCache, APrefixIsFoundWhereItsLastWindowIsStillThere) {
  KvCache cache({.blocks = 40, .window = 64, .recent_parts = 6}, true);
  const auto tokens = Tokens(10 * kBlockSize);
  SequenceKv first;
  Grow(cache, tokens, &first);
  cache.Release(&first);
  ExpectUsage(cache, 30, 10, 0);
  ExpectRecentUsage(cache, 0, 6, 0);  // The parts of blocks 4 to 9.

  // Up to seven blocks of it: blocks 5 and 6 have their parts.
  SequenceKv second;
  auto other = Tokens(7 * kBlockSize);
  other.push_back(1);
  EXPECT_EQ(cache.MatchPrefix(other, &second), 7 * kBlockSize);
  EXPECT_EQ(second.first_recent, 5);
  ExpectRecentUsage(cache, 0, 4, 2);

  // A prefix of five blocks would need those of 3 and 4, of which one is gone.
  SequenceKv third;
  other = Tokens(5 * kBlockSize);
  other.push_back(1);
  EXPECT_EQ(cache.MatchPrefix(other, &third), 0);

  // The places of what nobody refers to are reclaimed, and what is in use stays.
  SequenceKv fourth;
  ASSERT_TRUE(cache.Reserve(4 * kBlockSize, &fourth));
  EXPECT_FALSE(cache.Reserve(5 * kBlockSize, &fourth));
  ExpectRecentUsage(cache, 0, 0, 6);
  cache.Release(&second);
  EXPECT_EQ(cache.MatchPrefix(tokens, &second), 7 * kBlockSize) << "the rest has lost its parts";
}

TEST(KvCache, TruncatingBehindTheWindowStartsAgain) {
  KvCache cache({.blocks = 16, .window = 33, .recent_parts = 16}, false);
  SequenceKv sequence;
  Grow(cache, Tokens(200), &sequence);
  EXPECT_EQ(sequence.first_recent, 5);
  cache.Truncate(195, &sequence);
  EXPECT_EQ(sequence.committed, 195);
  cache.Truncate(191, &sequence);
  EXPECT_EQ(sequence.committed, 0) << "block 4 would be seen";
  ExpectRecentUsage(cache, 16, 0, 0);
}

TEST(KvCache, AnotherSequencesBlockTakesOverTheRecentPart) {
  KvCache cache({.blocks = 16, .window = 32, .recent_parts = 5}, true);
  const auto tokens = Tokens(3 * kBlockSize);
  SequenceKv first;
  Grow(cache, tokens, &first);
  SequenceKv second;
  ASSERT_TRUE(cache.Reserve(3 * kBlockSize, &second));  // Reclaims the part of block 0.
  second.committed = 3 * kBlockSize;
  cache.Publish(tokens, &second);
  EXPECT_EQ(second.blocks, first.blocks);
  ExpectUsage(cache, 13, 0, 3);
  ExpectRecentUsage(cache, 2, 2, 1);
}

TEST(KvCache, RoomIsForWhatSequencesReferTo) {
  const KvDemand demand{.sequences = 2, .rows = 128, .nodes = 31};
  KvRoom room = RoomFor(1000, 129, 0, demand, /*prefix_cache=*/false);
  EXPECT_EQ(room.recent_parts, 2 * (4 + 1 + 2) + 4);
  EXPECT_EQ(RoomFor(1000, 129, 0, demand, /*prefix_cache=*/true).recent_parts,
            2 * room.recent_parts);
  EXPECT_EQ(RoomFor(1000, 129, 33, demand, false).recent_parts, room.recent_parts + 2 * 2);
  for (const KvRoom& whole :
       {RoomFor(1000, 0, 0, demand, true), RoomFor(18, 129, 0, demand, false)}) {
    EXPECT_EQ(whole.window, 0);
    EXPECT_EQ(whole.recent_parts, 0);
  }
  // Two sequences that read their prompts together, each with a tree, never run out.
  KvCache cache(room, false);
  std::vector<SequenceKv> sequences(2);
  std::mt19937 random(1);
  for (int pass = 0; pass < 200; ++pass) {
    const auto share = static_cast<std::int32_t>(random() % 129);
    const std::int32_t rows[] = {std::max(share, 1), std::max(128 - share, 1)};
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(cache.Reserve(sequences[i].committed + rows[i] + 31, &sequences[i]));
    }
    for (int i = 0; i < 2; ++i) {
      sequences[i].committed += rows[i];
      cache.Publish({}, &sequences[i]);
    }
  }
}

struct Scenario {
  KvRoom room;
  bool prefix_cache;
  BlockHash hash;
};

TEST(KvCacheProperty, AgreesWithANaiveModel) {
  const BlockHash constant = [](std::uint64_t, std::span<const Token>) { return std::uint64_t{0}; };
  const BlockHash weak = [](std::uint64_t parent, std::span<const Token> tokens) {
    return (parent + std::uint64_t(tokens[0])) % 3;
  };
  const Scenario scenarios[] = {{{12}, true, HashBlock},
                                {{40}, true, HashBlock},
                                {{9}, true, weak},
                                {{12}, true, constant},
                                {{12}, false, HashBlock},
                                {{0}, true, HashBlock},
                                {{40, 33, 12}, true, HashBlock},
                                {{40, 100, 20}, true, weak},
                                {{25, 1, 9}, true, HashBlock},
                                {{12, 64, 12}, true, HashBlock},
                                {{30, 70, 14}, false, HashBlock},
                                {{40, 32, 2}, true, HashBlock},
                                {{40, 33, 12, 4}, true, HashBlock},
                                {{40, 100, 20, 33}, true, weak},
                                {{25, 1, 9, 1}, true, HashBlock},
                                {{30, 70, 14, 32}, false, HashBlock},
                                {{40, 20, 13, 200}, true, HashBlock}};
  for (const Scenario& scenario : scenarios) {
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      KvCacheHarness harness(scenario.room, scenario.prefix_cache, scenario.hash);
      std::mt19937 random(seed);
      for (int step = 0; step < 500; ++step) {
        const std::string wrong =
            harness.Step([&random](std::uint32_t bound) { return random() % bound; });
        ASSERT_EQ(wrong, "") << scenario.room.blocks << " blocks, window " << scenario.room.window
                             << ", anchors " << scenario.room.anchors << ", seed " << seed
                             << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace foretoken
