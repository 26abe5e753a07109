#include "text/tokenizer/pair/text_pair.h"

#include <algorithm>
#include <utility>

#include "base/text/utf8.h"
#include "text/tokenizer/encode_behind.h"
#include "text/tokenizer/pair/vocabulary_match.h"

namespace foretoken {
namespace {

// So many of the last tokens may still change at least: merges reach no farther but in odd texts,
// where only a guess is the worse for it.
constexpr std::size_t kLeastOpen = 6;

// Whether a text may be cut in front of tokens[i], a word's beginning: the parts then encode to the
// tokens of the whole.
bool BeginsWord(const Tokenizer& tokenizer, std::span<const Token> tokens, std::size_t i) {
  if (!tokenizer.TokenBytes(tokens[i]).starts_with(' ')) return false;
  return i == 0 || !tokenizer.TokenBytes(tokens[i - 1]).ends_with(' ');
}

bool BeginsCharacter(std::string_view bytes) {
  return !bytes.empty() && (static_cast<unsigned char>(bytes[0]) & 0xC0U) != 0x80U;
}

std::vector<Token> EncodeText(const Tokenizer& tokenizer, std::string_view text, bool at_start) {
  return at_start ? tokenizer.Encode(text, /*add_bos=*/false, /*parse_special=*/false)
                  : EncodeBehind(tokenizer, text);
}

// The last tokens of a text that are encoded again with what follows.
struct Window {
  std::size_t begin = 0;
  bool at_start = false;  // The window begins where the text does.
};

Window WindowOf(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::size_t begin = tokens.size();
  std::size_t last_character = begin;
  for (; begin > 0 && tokens.size() - begin < RunningText::kMostOpen; --begin) {
    const std::string_view bytes = tokenizer.TokenBytes(tokens[begin - 1]);
    if (bytes.empty()) return {.begin = begin, .at_start = begin == 1};
    if (BeginsCharacter(bytes)) last_character = begin - 1;
    const bool enough = tokens.size() - begin + 1 >= kLeastOpen;
    if (enough && BeginsWord(tokenizer, tokens, begin - 1)) return {.begin = begin - 1};
  }
  if (begin == 0) return {.begin = 0, .at_start = true};
  return {.begin = last_character};
}

bool HasNoText(const Tokenizer& tokenizer, Token token) {
  return tokenizer.IsSpecial(token) && tokenizer.TokenBytes(token).empty();
}

}  // namespace

std::vector<Token> EncodeBehind(const Tokenizer& tokenizer, std::span<const Token> tokens,
                                std::string_view text) {
  const Window window = WindowOf(tokenizer, tokens);
  const auto open = tokens.subspan(window.begin);
  std::string together;
  for (const Token token : open) together += tokenizer.TokenBytes(token);
  if (window.at_start && tokenizer.DropsLeadingSpace() && together.starts_with(' ')) {
    together.erase(0, 1);
  }
  together += text;
  if (ValidUtf8Prefix(together) != together.size()) return {};
  std::vector<Token> found = EncodeText(tokenizer, together, window.at_start);
  if (found.size() >= open.size() && std::equal(open.begin(), open.end(), found.begin())) {
    found.erase(found.begin(), found.begin() + std::ssize(open));
    return found;
  }
  if (ValidUtf8Prefix(text) != text.size()) return {};
  return EncodeBehind(tokenizer, text);
}

void RunningText::Begin(const Tokenizer& tokenizer) {
  *this = RunningText();
  if (const auto bos = tokenizer.bos()) tokens_.push_back(*bos);
  settled_ = tokens_.size();
}

void RunningText::Append(const Tokenizer& tokenizer, std::string_view text) {
  if (text.empty()) return;
  open_ += text;
  tokens_.resize(settled_);
  const std::vector<Token> encoded = EncodeText(tokenizer, open_, at_start_);
  tokens_.insert(tokens_.end(), encoded.begin(), encoded.end());
  Settle(tokenizer);
}

void RunningText::AppendSpecial(Token token) {
  tokens_.push_back(token);
  settled_ = tokens_.size();
  open_.clear();
  at_start_ = false;
}

void RunningText::Settle(const Tokenizer& tokenizer) {
  const std::span<const Token> open = std::span(tokens_).subspan(settled_);
  if (open.size() <= kLeastOpen) return;
  const std::size_t last = open.size() - kLeastOpen;
  const std::size_t first = open.size() - std::min(open.size() - 1, kMostOpen);
  std::size_t cut = last;
  while (cut >= first && !BeginsWord(tokenizer, open, cut)) --cut;
  if (cut < first) {
    if (open.size() <= kMostOpen) return;
    cut = last;
    while (cut >= first && !BeginsCharacter(tokenizer.TokenBytes(open[cut]))) --cut;
  }
  std::string text;
  for (const Token token : open.first(cut)) text += tokenizer.TokenBytes(token);
  if (at_start_ && tokenizer.DropsLeadingSpace() && text.starts_with(' ')) text.erase(0, 1);
  if (cut >= first && open_.starts_with(text)) {
    settled_ += cut;
    open_.erase(0, text.size());
    at_start_ = false;
  } else if (open.size() > kMostOpen) {  // A tokenizer that changes what it reads.
    settled_ = tokens_.size();
    open_.clear();
    at_start_ = false;
  }
}

std::shared_ptr<const TextPair> MakeTextPair(std::shared_ptr<const Tokenizer> target,
                                             std::shared_ptr<const Tokenizer> draft) {
  std::vector<Token> marks = MatchVocabularies(*target, *draft).same;
  for (Token token = 0; token < std::ssize(marks); ++token) {
    Token& mark = marks[token];
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
    const std::size_t place = token;
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
