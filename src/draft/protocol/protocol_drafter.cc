#include <algorithm>
#include <unordered_map>

#include "draft/grow_proposal.h"
#include "draft/latest_occurrence.h"
#include "draft/protocol/allowed_tokens.h"
#include "draft/protocol/copy_cursor.h"
#include "draft/registry.h"

namespace foretoken {
namespace {

// Work on masks for one proposal, as ConstraintCursor counts: some are far more than a pass.
constexpr std::int64_t kMaskSteps = 1 << 16;
constexpr int kAroundEdit = 2;  // Tokens guessed as if one token was inserted or replaced.
constexpr std::size_t kLongestMatch = 4;

// What the form of a text says of its continuation. Tokens that a grammar forces are certain, so a
// forced run costs one pass; where it leaves a few texts open each is a branch; and behind all
// that, or without a grammar, what is being copied goes on: a file under edit, a tool's result, a
// value named before. Of copies only what the grammar allows is proposed.
class ProtocolDrafter : public Drafter {
 public:
  explicit ProtocolDrafter(BytesOf bytes_of) : allowed_(std::move(bytes_of)) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) {
      CopyCursor& cursor = cursors_[context.sequence];
      cursor.Follow(context.tokens);
      context.proposal->Clear();
      if (context.max_nodes > 0 && context.lookahead > 0) Propose(cursor, context);
      if (context.proposal->size() == 0) continue;
      context.proposal->source = ProposalSource::Of(DrafterId::kProtocol);
    }
  }
  void Forget(SequenceId sequence) override { cursors_.erase(sequence); }

 private:
  void Propose(const CopyCursor& cursor, const DraftContext& context) {
    steps_ = kMaskSteps;
    const int forced = Force(context);
    if (forced > 0) {  // What was lost or found before says nothing behind new tokens.
      Copy(context, forced, Continuation(context, forced));
      return;
    }
    Copy(context, 0, cursor.next() != 0 ? cursor.next() : Continuation(context, 0));
    if (cursor.lost_at() == 0) return;
    const auto most = std::min<std::size_t>(context.tokens.size() - 1, cursor.lost_at() + 1);
    for (std::size_t place = cursor.lost_at(); place <= most; ++place) {
      Copy(context, 0, place, kAroundEdit);
    }
  }

  // Grows what the grammar forces or leaves open from the root on; the end of the first branch, as
  // far as there is nothing else to say.
  int Force(const DraftContext& context) {
    int node = 0;
    while (context.history != nullptr && HasRoom(context, node)) {
      const auto path = PathTokens(*context.proposal, node);
      if (!allowed_.Look(*context.history, path, &steps_)) break;
      const auto ways = allowed_.Ways();
      if (ways.empty()) break;
      const int first = Grow(context.proposal, node, ways[0]);
      for (std::size_t i = 1; i < ways.size() && HasRoom(context, node); ++i) {
        Grow(context.proposal, node, ways[i]);
      }
      node = first;
    }
    return node;
  }

  // Goes on behind `node` with the text from `place` on (0: nothing).
  void Copy(const DraftContext& context, int node, std::size_t place, int most = kMaxProposal) {
    if (place == 0) return;
    const TokenHistory* history = context.history;
    const bool masked = history != nullptr && history->constraint() != nullptr;
    for (; most > 0 && place < context.tokens.size() && HasRoom(context, node); --most, ++place) {
      const Token token = context.tokens[place];
      if (masked) {
        const auto path = PathTokens(*context.proposal, node);
        if (!allowed_.Look(*history, path, &steps_) || !allowed_.Allows(token)) return;
      }
      node = Grow(context.proposal, node, token);
    }
  }

  static std::size_t Continuation(const DraftContext& context, int node) {
    const auto path = PathTokens(*context.proposal, node);
    for (std::size_t length = kLongestMatch; length >= 1; --length) {
      const std::size_t place = LatestOccurrence(context.tokens, path, length);
      if (place != 0) return place;
    }
    return 0;
  }

  static bool HasRoom(const DraftContext& context, int node) {
    return context.proposal->size() < std::min(context.max_nodes, kMaxProposal) &&
           context.proposal->Depth(node) < context.lookahead;
  }

  AllowedTokens allowed_;
  std::int64_t steps_ = 0;
  std::unordered_map<SequenceId, CopyCursor> cursors_;
};

}  // namespace

std::unique_ptr<Drafter> MakeProtocolDrafter(const DrafterParts& parts) {
  return std::make_unique<ProtocolDrafter>(parts.bytes_of);
}

}  // namespace foretoken
