#include "text/tokenizer/pair/text_pair.h"

#include <algorithm>
#include <utility>

#include "base/text/utf8.h"
#include "text/tokenizer/pair/vocabulary_match.h"

namespace foretoken {
namespace {

bool HasNoText(const Tokenizer& tokenizer, Token token) {
  return tokenizer.IsSpecial(token) && tokenizer.TokenBytes(token).empty();
}

}  // namespace

std::shared_ptr<const TextPair> MakeTextPair(std::shared_ptr<const Tokenizer> target,
                                             std::shared_ptr<const Tokenizer> draft) {
  std::vector<Token> marks = MatchVocabularies(*target, *draft).same;
  for (Token token = 0; token < std::ssize(marks); ++token) {
    Token& mark = marks[static_cast<std::size_t>(token)];
    if (mark >= 0 && (!HasNoText(*target, token) || !HasNoText(*draft, mark))) mark = -1;
  }
  return std::make_shared<const TextPair>(
      TextPair{std::move(target), std::move(draft), std::move(marks)});
}

void TextOfTarget::Read(const TextPair& pair, std::span<const Token> tokens) {
  if (read_ == 0) text_.Begin(*pair.draft);
  for (; read_ < tokens.size(); ++read_) {
    const Token token = tokens[read_];
    const std::string_view bytes = pair.target->TokenBytes(token);
    if (!bytes.empty()) {
      ReadBytes(pair, bytes);
      continue;
    }
    const auto place = static_cast<std::size_t>(token);
    const Token mark = place < pair.marks.size() ? pair.marks[place] : -1;
    // The draft's text begins by itself.
    if (mark < 0 || (read_ == 0 && mark == pair.draft->bos())) continue;
    if (!pending_.empty()) fresh_ += kReplacementCharacter;
    pending_.clear();
    text_.Append(*pair.draft, std::exchange(fresh_, {}));
    text_.AppendSpecial(mark);
    at_start_ = false;
  }
  text_.Append(*pair.draft, fresh_);
  fresh_.clear();
}

void TextOfTarget::ReadBytes(const TextPair& pair, std::string_view bytes) {
  if (std::exchange(at_start_, false) && pair.target->DropsLeadingSpace() && bytes[0] == ' ') {
    bytes.remove_prefix(1);
  }
  pending_ += bytes;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = ReadUtf8(rest);
    if (step.kind == Utf8Step::kIncomplete) break;
    fresh_ += step.kind == Utf8Step::kCharacter ? rest.substr(0, step.size) : kReplacementCharacter;
    rest.remove_prefix(step.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

std::vector<Token> TargetTokensOf(const TextPair& pair, const TextOfTarget& text,
                                  std::span<const Token> tokens, std::span<const Token> said) {
  std::string drafted;
  Token mark = -1;
  for (const Token token : said) {
    if (HasNoText(*pair.draft, token)) {
      mark = token;
      break;
    }
    drafted += pair.draft->TokenBytes(token);
  }
  if (text.at_start() && pair.draft->DropsLeadingSpace() && drafted.starts_with(' ')) {
    drafted.erase(0, 1);
  }
  drafted.resize(ValidUtf8Prefix(drafted));
  if (!drafted.starts_with(text.pending())) return {};
  drafted.erase(0, text.pending().size());
  std::vector<Token> found;
  if (!drafted.empty()) {
    found = EncodeBehind(*pair.target, tokens, drafted);
    if (found.empty()) return {};
  }
  const auto same = std::ranges::find(pair.marks, mark);
  if (mark >= 0 && same != pair.marks.end()) {
    found.push_back(static_cast<Token>(same - pair.marks.begin()));
  }
  return found;
}

}  // namespace foretoken
