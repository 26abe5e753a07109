#include "core/datastore/index/suffix_automaton.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/datastore/datastore_testing.h"

namespace foretoken {
namespace {

using Text = std::vector<Token>;

// How often each string of up to `depth` tokens occurs, the plainest way.
std::map<Text, std::uint32_t> CountStrings(const Documents& documents, std::size_t depth) {
  std::map<Text, std::uint32_t> counts;
  for (const Text& document : documents) {
    for (std::size_t begin = 0; begin < document.size(); ++begin) {
      for (std::size_t n = 1; n <= depth && begin + n <= document.size(); ++n) {
        ++counts[Text(document.begin() + begin, document.begin() + begin + n)];
      }
    }
  }
  return counts;
}

// Every string of up to `depth` tokens below a state, with the count that its parent tells.
void Collect(const SuffixAutomaton& automaton, std::uint32_t state, Text* path, std::size_t depth,
             std::map<Text, std::uint32_t>* counts) {
  if (path->size() == depth) return;
  automaton.VisitChildren(state, [&](std::uint32_t child, Token token, std::uint32_t count) {
    path->push_back(token);
    (*counts)[*path] = count;
    Collect(automaton, child, path, depth, counts);
    path->pop_back();
  });
}

void Add(const Text& text, SuffixAutomaton* automaton) {
  for (const Token token : text) automaton->Append(token);
  automaton->Break();
}

TEST(SuffixAutomaton, CountsEveryStringOfEveryText) {
  std::mt19937 random(3);
  SuffixAutomaton automaton;
  for (int trial = 0; trial < 30; ++trial) {
    const Documents documents = RandomDocuments(&random, 6, 20, 5);
    automaton.Clear();
    std::size_t tokens = 0;
    for (const Text& document : documents) {
      Add(document, &automaton);
      tokens += document.size();
    }
    EXPECT_EQ(automaton.tokens(), tokens);
    std::map<Text, std::uint32_t> counts;
    Text path;
    Collect(automaton, SuffixAutomaton::kRoot, &path, 7, &counts);
    EXPECT_EQ(counts, CountStrings(documents, 7));
  }
}

TEST(SuffixAutomaton, FindsTheLongestSuffixAndThoseThatOccurMoreOften) {
  SuffixAutomaton automaton;
  Add({1, 2, 3, 4}, &automaton);
  Add({9, 2, 3, 5}, &automaton);
  const auto match = automaton.LongestSuffix(Text{7, 1, 2, 3});
  EXPECT_EQ(match.length, 3);
  EXPECT_EQ(automaton.count(match.state), 1U);
  const std::uint32_t shorter = automaton.Link(match.state);
  EXPECT_EQ(automaton.length(shorter), 2);
  EXPECT_EQ(automaton.count(shorter), 2U);
  EXPECT_EQ(automaton.Link(shorter), SuffixAutomaton::kRoot);  // "3" occurs where "2 3" does.
  EXPECT_EQ(automaton.LongestSuffix(Text{1, 2, 9}).length, 1);
  EXPECT_EQ(automaton.LongestSuffix(Text{1, 2, 8}).length, 0);
  EXPECT_EQ(automaton.LongestSuffix(Text{}).state, SuffixAutomaton::kRoot);
  // Texts do not run into each other.
  EXPECT_EQ(automaton.LongestSuffix(Text{4, 9}).length, 1);
}

TEST(SuffixAutomaton, ATextOfOneTokenTakesNoLongerThanAnyOther) {
  SuffixAutomaton automaton;
  for (int i = 0; i < 300'000; ++i) automaton.Append(1);  // By its square this would not end.
  EXPECT_EQ(automaton.tokens(), 300'000U);
  EXPECT_EQ(automaton.LongestSuffix(Text(50, 1)).length, 50);
}

}  // namespace
}  // namespace foretoken
