#include "core/draft/lookahead/ngram_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace foretoken {
namespace {

using Tokens = std::vector<Token>;

std::vector<Tokens> Latest(NgramPool* pool, Token first, int most) {
  std::vector<Tokens> found;
  for (const auto rest : pool->Latest(first, most)) found.emplace_back(rest.begin(), rest.end());
  return found;
}

TEST(NgramPool, TheLatestComeFirst) {
  NgramPool pool;
  pool.Insert(5, Tokens{1, 2});
  pool.Insert(5, Tokens{3});
  pool.Insert(6, Tokens{9});
  EXPECT_EQ(Latest(&pool, 5, 8), (std::vector<Tokens>{{3}, {1, 2}}));
  pool.Insert(5, Tokens{1, 2});
  EXPECT_EQ(Latest(&pool, 5, 8), (std::vector<Tokens>{{1, 2}, {3}}));
  EXPECT_EQ(Latest(&pool, 5, 1), (std::vector<Tokens>{{1, 2}}));
  EXPECT_EQ(Latest(&pool, 5, 0).size(), 0U);
  EXPECT_EQ(Latest(&pool, 7, 8).size(), 0U);
  pool.Clear();
  EXPECT_EQ(Latest(&pool, 5, 8).size(), 0U);
}

TEST(NgramPool, TheOldestMakesRoom) {
  NgramPool pool;
  for (Token t = 0; t < 2 * NgramPool::kWays; ++t) pool.Insert(5, Tokens{t});
  const auto found = Latest(&pool, 5, 2 * NgramPool::kWays);
  ASSERT_EQ(found.size(), std::size_t{NgramPool::kWays});
  EXPECT_EQ(found.front(), Tokens{2 * NgramPool::kWays - 1});
  EXPECT_EQ(found.back(), Tokens{NgramPool::kWays});
  Tokens longest(100);
  std::iota(longest.begin(), longest.end(), 0);
  pool.Insert(6, longest);
  longest.resize(NgramPool::kMaxLength);
  EXPECT_EQ(Latest(&pool, 6, 1), std::vector<Tokens>{longest});
}

}  // namespace
}  // namespace foretoken
