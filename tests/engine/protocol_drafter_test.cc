#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "core/draft/latest_occurrence.h"
#include "core/draft/protocol/copy_cursor.h"
#include "core/draft/registry.h"
#include "core/sampling/history.h"
#include "text/grammar/tokens/grammar_constraint.h"

namespace foretoken {
namespace {

// Letters, and words that grammars of the tests are made of. Token 0 ends a text.
const std::vector<std::string> kWords = {"",       "{\"", "name", "\":",   "\"",   "nam", "n", "e",
                                         "age",    "red", "rose", "green", "blue", "}",   "{", ":",
                                         "a",      "g",   "r",    "o",     "s",    "d",   "m", "b",
                                         "{\"nam", "t",   "f",    "l",     "u",    "1"};

Token TokenOf(std::string_view word) {
  for (std::size_t i = 1; i < kWords.size(); ++i) {
    if (kWords[i] == word) return static_cast<Token>(i);
  }
  ADD_FAILURE() << word;
  return 0;
}

DrafterParts Parts() {
  return {.vocabulary = Int(kWords.size()),
          .bytes_of = [](Token token) { return std::string_view(kWords[token]); }};
}

// What `drafter` proposes behind `tokens`.
void ProposeBehind(Drafter* drafter, std::span<const Token> tokens, const TokenHistory& history,
                   int lookahead, int nodes, Proposal* proposal) {
  const SamplingParams sampling;
  DraftContext context{.sequence = 1,
                       .tokens = tokens,
                       .sampling = &sampling,
                       .history = &history,
                       .lookahead = lookahead,
                       .max_nodes = nodes,
                       .proposal = proposal};
  drafter->Propose(std::span(&context, 1));
}

class Protocol : public testing::Test {
 protected:
  void Constrain(const std::string& grammar) {
    const std::vector<std::string_view> views(kWords.begin(), kWords.end());
    auto constraint = GrammarConstraint::Create(
        grammar, std::make_shared<ConstraintVocabulary>(
                     ConstraintVocabulary{.trie = TokenTrie(views), .end_tokens = {0}}));
    ASSERT_TRUE(constraint.ok()) << constraint.error().message;
    history_.Constrain(**constraint, /*drops_space=*/false);
  }

  const Proposal& Propose(std::span<const Token> tokens, int lookahead = 16, int nodes = 16) {
    ProposeBehind(drafter_.get(), tokens, history_, lookahead, nodes, &proposal_);
    return proposal_;
  }

  // The text below a node's path of first children.
  std::string FirstBranch() const {
    std::string text;
    for (int node = proposal_.FirstChild(0); node != 0; node = proposal_.FirstChild(node)) {
      text += kWords[proposal_.tokens[node - 1]];
    }
    return text;
  }

  const std::unique_ptr<Drafter> drafter_ = MakeDrafter(DrafterId::kProtocol, Parts());
  TokenHistory history_{Int(kWords.size())};
  Proposal proposal_;
};

TEST_F(Protocol, AForcedRunIsProposedWhole) {
  Constrain("root ::= \"{\\\"name\\\":\" [1]+ \"}\"");
  const std::vector<Token> prompt = {TokenOf("a")};
  Propose(prompt);
  EXPECT_EQ(FirstBranch().substr(0, 8), "{\"name\":");
  EXPECT_EQ(proposal_.tokens[0], TokenOf("{\"nam"));  // The longest token of the forced text.
  EXPECT_EQ(proposal_.source, ProposalSource::Of(DrafterId::kProtocol));
}

TEST_F(Protocol, AForcedRunIsWrittenAsTheTokenizerWritesIt) {
  Constrain("root ::= \"{\\\"name\\\":\" [1]+ \"}\"");
  std::string forced;
  DrafterParts parts = Parts();
  parts.tokens_of = [&forced](std::string_view text) {
    if (forced.empty()) forced = text;
    return std::vector<Token>{TokenOf("{\""), TokenOf("name"), TokenOf("\":")};
  };
  const std::vector<Token> prompt = {TokenOf("a")};
  ProposeBehind(MakeDrafter(DrafterId::kProtocol, parts).get(), prompt, history_, 16, 16,
                &proposal_);
  EXPECT_EQ(forced.substr(0, 8), "{\"name\":");
  ASSERT_GE(proposal_.size(), 3);
  EXPECT_EQ(proposal_.tokens[0], TokenOf("{\""));  // Not the longest token, as above.
  EXPECT_EQ(proposal_.tokens[1], TokenOf("name"));
}

TEST_F(Protocol, ARecordIsCopiedThroughWhatIsForced) {
  // The first of the records "red:rose}" and "blue:d}" is being written, though the other is later.
  Constrain("root ::= [abdefglmnorstu]+ \":\" [abdefglmnorstu]+ \"}\"");
  std::vector<Token> text;
  for (const char* word : {"red", ":", "rose", "}", "blue", ":", "d", "}", "g"}) {
    text.push_back(TokenOf(word));
  }
  Propose(text);
  text.push_back(TokenOf("red"));
  history_.AddOutput(TokenOf("red"));
  // A second word is allowed too, so ":" is copied, and what is behind it.
  Propose(text);
  EXPECT_EQ(FirstBranch().substr(0, 6), ":rose}");
}

TEST_F(Protocol, AFewTextsAreBranches) {
  Constrain("root ::= (\"red\" | \"green\") \"}\"");
  const std::vector<Token> prompt = {TokenOf("a")};
  Propose(prompt);
  EXPECT_EQ(proposal_.Children(0), 2);
  EXPECT_NE(proposal_.ChildWith(0, TokenOf("red")), 0);
  EXPECT_NE(proposal_.ChildWith(0, TokenOf("green")), 0);
  EXPECT_EQ(FirstBranch(), "green}");
}

TEST_F(Protocol, WhereAnythingMayComeNothingIsForced) {
  Constrain("root ::= [abdefglmnorstu]+ \"}\"");
  const std::vector<Token> prompt = {TokenOf("1"), TokenOf("{")};
  EXPECT_EQ(Propose(prompt).size(), 0);
}

TEST_F(Protocol, CopiesOnlyWhatTheGrammarAllows) {
  Constrain("root ::= [abdefglmnorstu]+ \"}\"");
  for (const char* word : {"red", "blue"}) history_.AddOutput(TokenOf(word));
  // What followed "red blue": "rose", then a digit, which is not allowed.
  const std::vector<Token> tokens = {TokenOf("red"), TokenOf("blue"), TokenOf("rose"),
                                     TokenOf("1"),   TokenOf("red"),  TokenOf("blue")};
  Propose(tokens);
  ASSERT_EQ(proposal_.size(), 1);
  EXPECT_EQ(proposal_.tokens[0], TokenOf("rose"));
}

TEST_F(Protocol, StaysWithinItsLimits) {
  Constrain("root ::= \"{\\\"name\\\":\" (\"red\" | \"green\" | \"blue\") \"}\"");
  const std::vector<Token> prompt = {TokenOf("a")};
  for (int limit = 0; limit < 6; ++limit) {
    Propose(prompt, limit, 10);
    for (int node = 1; node <= proposal_.size(); ++node) EXPECT_LE(proposal_.Depth(node), limit);
    EXPECT_LE(Propose(prompt, 10, limit).size(), limit);
  }
}

// An edit: the source, then what of it is written again with lines inserted, replaced, left out.
// Returns tokens per round of a target that writes exactly that.
double EditedTokensPerRound(Drafter* drafter, const std::vector<Token>& source,
                            const std::vector<Token>& edited) {
  std::vector<Token> text = source;
  const TokenHistory history(1000);
  std::size_t written = 0;
  int rounds = 0;
  while (written < edited.size()) {
    Proposal proposal;
    ProposeBehind(drafter, text, history, 15, 15, &proposal);
    int node = 0;
    do {  // The accepted tokens, then the bonus token.
      text.push_back(edited[written]);
      node = proposal.ChildWith(node, edited[written++]);
    } while (node != 0 && written < edited.size());
    ++rounds;
  }
  drafter->Forget(1);
  return static_cast<double>(edited.size()) / rounds;
}

// 300 lines of 8 tokens that share words as code does, each line ended by token 1.
std::vector<std::vector<Token>> SourceLines() {
  std::vector<std::vector<Token>> lines;
  std::uint32_t random = 1;
  for (int line = 0; line < 300; ++line) {
    std::vector<Token>& tokens = lines.emplace_back();
    for (int i = 0; i < 7; ++i) {
      random = random * 1664525U + 1013904223U;
      // Some words are everywhere, others rare.
      tokens.push_back(
          static_cast<Token>(random >> 30 == 0 ? 2 + (random >> 8) % 6 : 10 + (random >> 8) % 900));
    }
    tokens.push_back(1);
  }
  return lines;
}

TEST_F(Protocol, AnEditedFileIsCopiedAroundItsEdits) {
  const auto lines = SourceLines();
  std::vector<Token> source;
  std::vector<Token> edited;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    source.insert(source.end(), lines[i].begin(), lines[i].end());
    std::vector<Token> line = lines[i];
    if (i % 15 == 7) {  // 20 edits of each line's own kind.
      switch (i / 15 % 4) {
        case 0:
          line[3] = 950;
          break;
        case 1:
          line.insert(line.begin() + 4, {951, 952});
          break;
        case 2:
          line.erase(line.begin() + 2, line.begin() + 5);
          break;
        default:
          line.insert(line.end(), {953, 954, 955, 1});
      }
    }
    edited.insert(edited.end(), line.begin(), line.end());
  }
  const double protocol = EditedTokensPerRound(drafter_.get(), source, edited);
  const auto ngram = MakeDrafter(DrafterId::kNgram, {});
  EXPECT_GT(protocol, 9);
  EXPECT_GT(protocol, EditedTokensPerRound(ngram.get(), source, edited));
}

// Tokens per round of a target that writes `output` behind `prompt`, of which `prediction` is
// known.
double PredictedTokensPerRound(const std::vector<Token>& prompt,
                               const std::vector<Token>& prediction,
                               const std::vector<Token>& output) {
  const auto drafter = MakeDrafter(DrafterId::kProtocol, {});
  const TokenHistory history(1000);
  const SamplingParams sampling;
  std::vector<Token> text = prompt;
  text.push_back(output[0]);
  std::size_t written = 1;
  int rounds = 0;
  while (written < output.size()) {
    Proposal proposal;
    DraftContext context{.sequence = 1,
                         .tokens = text,
                         .sampling = &sampling,
                         .history = &history,
                         .prediction = prediction,
                         .lookahead = 15,
                         .max_nodes = 15,
                         .proposal = &proposal};
    drafter->Propose(std::span(&context, 1));
    int node = 0;
    do {
      text.push_back(output[written]);
      node = proposal.ChildWith(node, output[written++]);
    } while (node != 0 && written < output.size());
    ++rounds;
  }
  return static_cast<double>(output.size() - 1) / rounds;
}

TEST_F(Protocol, APredictionIsCopiedFromItsBeginningOn) {
  std::vector<Token> prediction;
  for (const auto& line : SourceLines()) {
    prediction.insert(prediction.end(), line.begin(), line.end());
  }
  // The prompt says how another answer began, which is not the one that is predicted.
  const std::vector<Token> prompt = {7, 8, prediction[0], 900, 901, 902, 7, 8};
  EXPECT_LT(PredictedTokensPerRound(prompt, {}, prediction), 1.1);
  EXPECT_GT(PredictedTokensPerRound(prompt, prediction, prediction), 15);
  std::vector<Token> changed = prediction;
  for (std::size_t i = 100; i < changed.size(); i += 100) changed[i] = 950;
  EXPECT_GT(PredictedTokensPerRound(prompt, prediction, changed), 8);
  // One that is wrong from its first token on.
  changed.erase(changed.begin());
  EXPECT_GT(PredictedTokensPerRound(prompt, prediction, changed), 8);
}

TEST(CopyCursor, IsFoundAgainBehindAnEdit) {
  std::vector<Token> text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
  CopyCursor cursor;
  cursor.Follow(text);
  EXPECT_EQ(cursor.next(), 3U);
  text.insert(text.end(), {4, 5});
  cursor.Follow(text);
  EXPECT_EQ(cursor.next(), 5U);
  text.push_back(50);  // In place of 6.
  cursor.Follow(text);
  EXPECT_EQ(cursor.next(), 0U);
  EXPECT_EQ(cursor.lost_at(), 5U);
  text.push_back(7);
  cursor.Follow(text);
  EXPECT_EQ(cursor.next(), 7U);
  EXPECT_EQ(cursor.lost_at(), 0U);
}

TEST(LatestOccurrence, CountsThePathToo) {
  const std::vector<Token> text = {1, 2, 3, 1, 2, 4, 1};
  EXPECT_EQ(LatestOccurrence(text, {}, 1), 4U);
  EXPECT_EQ(LatestOccurrence(text, std::vector<Token>{2}, 2), 5U);
  EXPECT_EQ(LatestOccurrence(text, std::vector<Token>{2, 3}, 3), 3U);
  EXPECT_EQ(LatestOccurrence(text, std::vector<Token>{9}, 2), 0U);
}

}  // namespace
}  // namespace foretoken
