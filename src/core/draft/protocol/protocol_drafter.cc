#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/static_vector.h"
#include "core/draft/grow_proposal.h"
#include "core/draft/latest_occurrence.h"
#include "core/draft/protocol/copy_cursor.h"
#include "core/draft/registry.h"
#include "core/sampling/history.h"
#include "foretoken/types.h"

namespace foretoken {
namespace {

// A token's text; empty of special ones.
using BytesOf = std::function<std::string_view(Token)>;

// Which tokens a sequence's grammar leaves behind a path, where these are few. Scratch memory
// only; one per thread.
class AllowedTokens {
 public:
  // Texts that a grammar leaves open, at most, for it to say anything.
  static constexpr int kMostTexts = 3;

  // `bytes_of` may be empty: then all allowed tokens count as texts of their own.
  explicit AllowedTokens(BytesOf bytes_of) : bytes_of_(std::move(bytes_of)) {}

  // The mask of the output and `path` within `*steps` steps of work, less those it took. False
  // where there is no grammar, or the mask takes more.
  bool Look(const TokenHistory& history, std::span<const Token> path, std::int64_t* steps);

  // Whether the last mask lets the token follow.
  bool Allows(Token token) const;
  // The ways on, longest token first of each: where a grammar forces a text, it allows every token
  // that the text begins with, and what models write is nearly always the longest. Tokens that
  // begin another one's text are no way of their own. None where there are more than kMostTexts,
  // or more than kMostTokens tokens are allowed.
  StaticVector<Token, kMostTexts> Ways();

 private:
  static constexpr int kMostTokens = 64;

  BytesOf bytes_of_;
  std::span<const std::uint64_t> mask_;
  std::vector<Token> allowed_;  // Reused.
};

bool AllowedTokens::Look(const TokenHistory& history, std::span<const Token> path,
                         std::int64_t* steps) {
  mask_ = {};
  const ConstraintCursor* cursor = history.constraint();
  if (cursor == nullptr || *steps <= 0 || !history.PrepareMask(path, steps)) return false;
  mask_ = cursor->Mask(path);
  return true;
}

bool AllowedTokens::Allows(Token token) const {
  const std::size_t at = token;
  return (mask_[at / 64] >> (at % 64) & 1) != 0;
}

StaticVector<Token, AllowedTokens::kMostTexts> AllowedTokens::Ways() {
  allowed_.clear();
  for (std::size_t word = 0; word < mask_.size(); ++word) {
    for (std::uint64_t bits = mask_[word]; bits != 0; bits &= bits - 1) {
      if (allowed_.size() == kMostTokens) return {};
      allowed_.push_back(static_cast<Token>(word * 64 + std::countr_zero(bits)));
    }
  }
  const auto bytes = [this](Token token) {
    return bytes_of_ ? bytes_of_(token) : std::string_view();
  };
  std::ranges::stable_sort(allowed_, std::ranges::greater(),
                           [&](Token token) { return bytes(token).size(); });
  StaticVector<Token, kMostTexts> ways;
  for (const Token token : allowed_) {
    const std::string_view text = bytes(token);
    const bool begins_other = !text.empty() && std::ranges::any_of(ways, [&](Token longer) {
      return bytes(longer).starts_with(text);
    });
    if (begins_other) continue;
    if (ways.size() == kMostTexts) return {};
    ways.push_back(token);
  }
  return ways;
}

// Work on masks for one proposal, as ConstraintCursor counts: some are far more than a pass.
constexpr std::int64_t kProposalMaskSteps = 1 << 16;
constexpr int kAroundEdit = 2;  // Tokens guessed as if one token was inserted or replaced.
constexpr std::size_t kLongestCopiedMatch = 4;

// A sequence and what it copies from: its own text and, where its output is predicted, that. A
// prediction is read as an earlier answer to the same prompt.
class CopiedText {
 public:
  // Takes the sequence as it is now; gives all that it may copy from, which ends with it.
  std::span<const Token> Follow(const DraftContext& context) {
    if (context.prediction.empty()) {
      cursor_.Follow(context.tokens);
      return context.tokens;
    }
    if (text_.empty()) {
      // The last of the prompt: what follows it is the output's first token, the proposal's root.
      const auto prompt = context.tokens.first(context.tokens.size() - 1);
      const auto end = prompt.last(std::min(prompt.size(), kPromptTail));
      text_.assign(end.begin(), end.end());
      cursor_ = CopyCursor(std::max<std::size_t>(text_.size(), 1));
      text_.insert(text_.end(), context.prediction.begin(), context.prediction.end());
      before_ = text_.size();
    }
    text_.resize(before_);
    text_.insert(text_.end(), context.tokens.begin(), context.tokens.end());
    cursor_.Follow(text_);
    return text_;
  }
  const CopyCursor& cursor() const { return cursor_; }

 private:
  static constexpr std::size_t kPromptTail = 3;  // With the first token enough to be found by.

  CopyCursor cursor_;
  std::vector<Token> text_;  // Where there is a prediction.
  std::size_t before_ = 0;   // Tokens of it before the sequence's own.
};

// What the form of a text says of its continuation. Tokens that a grammar forces are certain, so a
// forced run costs one pass; where it leaves a few texts open each is a branch; and behind all
// that, or without a grammar, what is being copied goes on: a file under edit, a tool's result, a
// value named before. Of copies only what the grammar allows is proposed.
class ProtocolDrafter : public Drafter {
 public:
  explicit ProtocolDrafter(const DrafterParts& parts)
      : bytes_of_(parts.bytes_of), tokens_of_(parts.tokens_of), allowed_(parts.bytes_of) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (DraftContext context : contexts) {
      CopiedText& copied = copied_[context.sequence];
      context.tokens = copied.Follow(context);
      context.proposal->Clear();
      if (context.max_nodes > 0 && context.lookahead > 0) Propose(copied.cursor(), context);
      if (context.proposal->size() == 0) continue;
      context.proposal->source = ProposalSource::Of(DrafterId::kProtocol);
    }
  }
  void Forget(SequenceId sequence) override { copied_.erase(sequence); }

 private:
  // The context's tokens are all that may be copied from.
  void Propose(const CopyCursor& cursor, const DraftContext& context) {
    steps_ = kProposalMaskSteps;
    if (Write(cursor, context) || cursor.lost_at() == 0) return;
    const auto most = std::min<std::size_t>(context.tokens.size() - 1, cursor.lost_at() + 1);
    for (std::size_t place = cursor.lost_at(); place <= most; ++place) {
      Copy(context, 0, place, kAroundEdit);
    }
  }

  // Grows one way on from the root, as far as it is known: what is being copied where the grammar
  // allows it, else what the grammar forces, with a branch for each text that it leaves open. What
  // is forced is copied too where the source has it in its own tokens, so that a copy goes on
  // behind it: the fields of a record that become arguments. Returns whether the grammar says
  // something behind the root.
  bool Write(CopyCursor cursor, const DraftContext& context) {
    text_.assign(context.tokens.begin(), context.tokens.end());
    bool says = false;
    int node = 0;
    while (HasRoom(context, node)) {
      StaticVector<Token, AllowedTokens::kMostTexts> ways;
      if (Masked(context)) {
        if (!Look(context, node)) break;
        ways = allowed_.Ways();
        says = says || (node == 0 && !ways.empty());
      }
      // Where a grammar says what comes, what is lost need not be looked for.
      if (cursor.next() != 0 || ways.empty()) cursor.Follow(text_);
      const Token copied = cursor.next() == 0 ? -1 : text_[cursor.next()];
      if (copied >= 0 && (!Masked(context) || allowed_.Allows(copied))) {
        node = Grow(context.proposal, node, copied);
      } else if (ways.size() == 1) {
        Force(context, node, ways[0]);
        for (const Token token : forced_) {
          if (!HasRoom(context, node)) return says;
          node = Grow(context.proposal, node, token);
          text_.push_back(token);
        }
        continue;
      } else if (!ways.empty()) {
        const int first = Grow(context.proposal, node, ways[0]);
        for (std::size_t i = 1; i < ways.size() && HasRoom(context, node); ++i) {
          Grow(context.proposal, node, ways[i]);
        }
        node = first;
      } else {
        if (copied < 0) Copy(context, node, Continuation(context, node));
        break;
      }
      text_.push_back(context.proposal->tokens[node - 1]);
    }
    return says;
  }

  // What the grammar forces behind `node`, where `token` is the longest that begins it: until it
  // leaves something open, as far as there is room, in the tokens that the tokenizer writes it in.
  // Those are what models write; the longest that are allowed are others about as often as not.
  void Force(const DraftContext& context, int node, Token token) {
    const auto path = PathTokens(*context.proposal, node);
    path_.assign(path.begin(), path.end());
    forced_.clear();
    forced_text_.clear();
    bool ends = false;  // With a token that has no text, such as the end of the whole.
    const int room = context.lookahead - context.proposal->Depth(node);
    for (;;) {
      path_.push_back(token);
      forced_.push_back(token);
      const std::string_view bytes = bytes_of_ ? bytes_of_(token) : std::string_view();
      ends = bytes.empty();
      forced_text_ += bytes;
      if (ends || std::ssize(forced_) >= room) break;
      if (!allowed_.Look(*context.history, path_, &steps_)) break;
      const auto ways = allowed_.Ways();
      if (ways.size() != 1) break;
      token = ways[0];
    }
    if (!tokens_of_ || forced_text_.empty()) return;
    forced_ = tokens_of_(forced_text_);
    if (ends) forced_.push_back(token);
  }

  static bool Masked(const DraftContext& context) {
    return context.history != nullptr && context.history->constraint() != nullptr;
  }
  bool Look(const DraftContext& context, int node) {
    return allowed_.Look(*context.history, PathTokens(*context.proposal, node), &steps_);
  }

  // Goes on behind `node` with the text from `place` on (0: nothing).
  void Copy(const DraftContext& context, int node, std::size_t place, int most = kMaxProposal) {
    if (place == 0) return;
    for (; most > 0 && place < context.tokens.size() && HasRoom(context, node); --most, ++place) {
      const Token token = context.tokens[place];
      if (Masked(context) && (!Look(context, node) || !allowed_.Allows(token))) return;
      node = Grow(context.proposal, node, token);
    }
  }

  static std::size_t Continuation(const DraftContext& context, int node) {
    const auto path = PathTokens(*context.proposal, node);
    for (std::size_t length = kLongestCopiedMatch; length >= 1; --length) {
      const std::size_t place = LatestOccurrence(context.tokens, path, length);
      if (place != 0) return place;
    }
    return 0;
  }

  static bool HasRoom(const DraftContext& context, int node) {
    return context.proposal->size() < std::min(context.max_nodes, kMaxProposal) &&
           context.proposal->Depth(node) < context.lookahead;
  }

  const BytesOf bytes_of_;
  const std::function<std::vector<Token>(std::string_view)> tokens_of_;
  AllowedTokens allowed_;
  std::int64_t steps_ = 0;
  std::vector<Token> text_;  // The context's text and what is proposed behind it.
  // What the grammar forces, and the path to it, in the longest tokens.
  std::vector<Token> path_;
  std::vector<Token> forced_;
  std::string forced_text_;
  std::unordered_map<SequenceId, CopiedText> copied_;
};

}  // namespace

std::unique_ptr<Drafter> MakeProtocolDrafter(const DrafterParts& parts) {
  return std::make_unique<ProtocolDrafter>(parts);
}

}  // namespace foretoken
