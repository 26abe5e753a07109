#include "text/tokenizer/pair/vocabulary_match.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "base/text/printable.h"

namespace foretoken {
namespace {

// The real families that are farthest apart share a sixth of the target's tokens, and those are
// four fifths of what texts are made of; who shares less than this has another kind of text in
// mind.
constexpr double kLeastShare = 0.1;

// How like each other two tokens of the same text are. Like tokens are paired first.
enum class Likeness {
  kSpelling,  // Spelled alike.
  kKind,      // Both special, or both text that a tokenizer writes.
  kText,      // Special in one only, or SentencePiece's <0x41> and "A".
};

// What a token is known by; empty where an id has no token.
std::string_view TextOf(const Tokenizer& tokenizer, Token token) {
  return tokenizer.IsSpecial(token) ? tokenizer.TokenName(token) : tokenizer.TokenBytes(token);
}

// SentencePiece's <0x0A>, which stands for a byte where no piece does.
bool IsByte(const Tokenizer& tokenizer, Token token) {
  return tokenizer.TokenBytes(token).size() == 1 && tokenizer.TokenName(token).starts_with("<0x");
}

bool IsWord(const Tokenizer& tokenizer, Token token) {
  return tokenizer.TokenBytes(token).size() > 1;
}

class Matching {
 public:
  Matching(const Tokenizer& target, const Tokenizer& draft)
      : target_(target), draft_(draft), next_(draft.vocabulary(), -1), taken_(next_.size(), false) {
    first_.reserve(next_.size());
    for (Token token = draft.vocabulary() - 1; token >= 0; --token) {
      const std::string_view text = TextOf(draft, token);
      if (text.empty()) continue;
      const auto [entry, added] = first_.try_emplace(text, token);
      if (!added) next_[token] = std::exchange(entry->second, token);
    }
    match_.same.assign(target.vocabulary(), -1);
    for (Token token = 0; token < target.vocabulary(); ++token) {
      alike_.push_back(First(TextOf(target, token)));
    }
  }

  VocabularyMatch Find() && {
    for (const Likeness needed : {Likeness::kSpelling, Likeness::kKind, Likeness::kText}) {
      for (Token token = 0; token < target_.vocabulary(); ++token) PairByText(token, needed);
    }
    PairByRole();
    Count();
    match_.read = match_.same;
    for (Token token = 0; token < target_.vocabulary(); ++token) {
      Token& read = match_.read[token];
      if (read < 0) read = EndOf(TextOf(target_, token));
    }
    return std::move(match_);
  }

 private:
  bool Paired(Token token) const { return match_.same[token] >= 0; }

  void Pair(Token token, Token other) {
    match_.same[token] = other;
    taken_[other] = true;
  }

  bool Alike(Token token, Token other, Likeness needed) const {
    if (needed == Likeness::kText) return true;
    if (target_.IsSpecial(token) != draft_.IsSpecial(other)) return false;
    return needed == Likeness::kSpelling ? target_.TokenName(token) == draft_.TokenName(other)
                                         : IsByte(target_, token) == IsByte(draft_, other);
  }

  // The first of the draft's tokens of a text, after which come next_'s; -1 where there is none.
  Token First(std::string_view text) const {
    const auto found = first_.find(text);
    return found == first_.end() ? -1 : found->second;
  }

  void PairByText(Token token, Likeness needed) {
    if (Paired(token)) return;
    Token other = alike_[token];
    for (; other >= 0; other = next_[other]) {
      if (taken_[other] || !Alike(token, other, needed)) continue;
      return Pair(token, other);
    }
  }

  // What begins texts, then what ends them, the usual end first.
  void PairByRole() {
    const auto pair = [this](std::optional<Token> token, std::optional<Token> other) {
      if (!token.has_value() || !other.has_value() || Paired(*token)) return;
      if (!taken_[*other]) Pair(*token, *other);
    };
    pair(target_.bos(), draft_.bos());
    std::vector<Token> free = draft_.eos();
    std::erase_if(free, [this](Token end) { return taken_[end]; });
    auto next = free.begin();
    for (const Token end : target_.eos()) {
      if (Paired(end) || next == free.end()) continue;
      Pair(end, *next++);
    }
  }

  void Count() {
    for (Token token = 0; token < target_.vocabulary(); ++token) {
      if (!IsWord(target_, token)) continue;
      ++match_.words;
      if (Paired(token)) ++match_.shared;
    }
  }

  // The draft's longest token of text that ends this one; else what it begins texts with, if only
  // because there must be some token.
  Token EndOf(std::string_view text) const {
    for (; !text.empty(); text.remove_prefix(1)) {
      Token token = First(text);
      for (; token >= 0; token = next_[token]) {
        if (!draft_.IsSpecial(token)) return token;
      }
    }
    return draft_.bos().value_or(0);
  }

  const Tokenizer& target_;
  const Tokenizer& draft_;
  // The draft's tokens by their text: the first, and behind each the next of the same text or -1.
  std::unordered_map<std::string_view, Token> first_;
  std::vector<Token> next_;
  std::vector<bool> taken_;   // Which of the draft's tokens have a partner.
  std::vector<Token> alike_;  // By the target's tokens: the first of the draft's of that text.
  VocabularyMatch match_;
};

}  // namespace

std::string VocabularyMatch::Summary() const {
  return fmt::format("of the target's {} tokens of several bytes it shares {}", words, shared);
}

VocabularyMatch MatchVocabularies(const Tokenizer& target, const Tokenizer& draft) {
  return Matching(target, draft).Find();
}

Status CheckEnoughShared(const VocabularyMatch& match, const Tokenizer& target) {
  if (match.shared >= kLeastShare * match.words) return {};
  std::string lacking;
  for (Token token = 0, named = 0; token < target.vocabulary() && named < 3; ++token) {
    if (match.same[token] >= 0 || !IsWord(target, token)) continue;
    lacking += fmt::format("{}{} '{}'", named++ == 0 ? "" : ", ", token,
                           Printable(target.TokenName(token)));
  }
  return Invalid(
      "the draft has another vocabulary than the target: {} (not {}, for example), too few for "
      "drafting to pay; let it draft by text, take a draft of the target's family, or mode sssd, "
      "which drafts without a model",
      match.Summary(), lacking);
}

}  // namespace foretoken
