#pragma once

#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Which of a draft's tokens stand for those of its target: those of the same text, whatever their
/// ids; of special tokens, those of the same name or, failing that, of the same role.
struct VocabularyMatch {
  /// By the target's tokens: the draft's, each at most once; -1 where it has none.
  std::vector<Token> same;
  /// By the target's tokens, what the draft is to read: that token or, where it has none, the
  /// longest of its own that the text ends with.
  std::vector<Token> read;
  /// The target's tokens that stand for several bytes (every vocabulary has the single ones), and
  /// how many of them the draft has.
  int words = 0;
  int shared = 0;

  /// "of the target's 31744 tokens of several bytes it shares 31700".
  std::string Summary() const;
};

VocabularyMatch MatchVocabularies(const Tokenizer& target, const Tokenizer& draft);

/// Refuses a draft that has too few of the target's tokens to be of use: how many it has, some of
/// those that it lacks, and what to do.
Status CheckEnoughShared(const VocabularyMatch& match, const Tokenizer& target);

}  // namespace foretoken
