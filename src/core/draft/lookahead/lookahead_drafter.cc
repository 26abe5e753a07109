#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "base/numbers/philox.h"
#include "core/draft/grow_proposal.h"
#include "core/draft/lookahead/ngram_pool.h"
#include "core/draft/per_scope.h"
#include "core/draft/registry.h"
#include "core/draft/target_choice.h"
#include "core/speculation/proposal.h"

namespace foretoken {
namespace {

// The lookahead window of a sequence (Fu et al., 2024, Section 3): W columns of K = N - 1 levels.
// The cell of column j and level l is a guess of the token j + l places behind the next one, made
// K - l passes ago: a column is a trajectory of Jacobi iterations along the text, and what the
// target says behind its last level makes an n-gram of it. Not thread-safe; allocates nothing.
class LookaheadWindow {
 public:
  // Makes the window that of a sequence of these tokens, columns * levels <= kMaxProposal; `seed`
  // draws the first guesses from its text. Does nothing if the window is that already.
  void Fit(std::span<const Token> tokens, std::uint64_t seed, int columns, int levels);

  // The window as part of the tree: its first level is a chain below the root, and each of its
  // tokens has its column's later levels as a chain. Nothing deeper than `depth`.
  void AppendTo(int depth, Proposal* proposal) const;

  // Moves on: every column that the pass has verified drops its first level and takes what
  // `choice` says behind its last one. `found(ngram)`, N tokens, is called for each of them.
  template <typename Found>
  void Observe(const VerifiedProposal& verified, TargetChoice* choice, Found&& found) {
    if (position_ != verified.tokens.size()) return;
    // The target's token behind each column; -1: it was not verified.
    std::array<Token, kMaxProposal> said;
    std::array<Token, kMaxProposal + 1> ngram;
    for (int j = 0; j < columns_; ++j) {
      const int node = LastNodeOf(j, *verified.proposal);
      said[j] = node == 0 ? -1 : choice->After(verified, node);
      if (node == 0) continue;
      for (int l = 0; l < levels_; ++l) ngram[l] = At(j, l);
      ngram[levels_] = said[j];
      found(std::span<const Token>(ngram).first(Size(levels_) + 1));
    }
    Advance(verified, said);
  }

 private:
  Token& At(int column, int level) { return cells_[column * levels_ + level]; }
  Token At(int column, int level) const { return cells_[column * levels_ + level]; }
  // The node of a column's last level; 0 where the proposal does not have all of them.
  int LastNodeOf(int column, const Proposal& proposal) const;
  void Advance(const VerifiedProposal& verified, std::span<const Token> said);
  // Makes a column a piece of the text, from `level` on.
  void Draw(std::span<const Token> tokens, int column, int level);

  std::size_t position_ = 0;  // The position of the first guess: the sequence's tokens so far.
  std::uint64_t seed_ = 0;
  int columns_ = 0;                          // W
  int levels_ = 0;                           // K
  std::array<Token, kMaxProposal> cells_{};  // [W, K]
};

void LookaheadWindow::Fit(std::span<const Token> tokens, std::uint64_t seed, int columns,
                          int levels) {
  if (position_ == tokens.size() && columns_ == columns && levels_ == levels) return;
  FT_CHECK(columns * levels <= kMaxProposal, "a window of {} x {} tokens", columns, levels);
  position_ = tokens.size();
  seed_ = seed;
  columns_ = columns;
  levels_ = levels;
  for (int j = 0; j < columns; ++j) Draw(tokens, j, 0);
}

void LookaheadWindow::AppendTo(int depth, Proposal* proposal) const {
  int first = 0;
  for (int j = 0; j < std::min(columns_, depth); ++j) {
    first = Grow(proposal, first, At(j, 0));
    int node = first;
    for (int l = 1; l < std::min(levels_, depth - j); ++l) node = Grow(proposal, node, At(j, l));
  }
}

int LookaheadWindow::LastNodeOf(int column, const Proposal& proposal) const {
  int node = 0;
  for (int step = 0; step < column + levels_; ++step) {
    const Token token = step <= column ? At(step, 0) : At(column, step - column);
    node = proposal.ChildWith(node, token);
    if (node == 0) return 0;
  }
  return node;
}

// A round that accepts a tokens takes the sequence a + 1 places further. The cell (j, l) was a
// guess of the place of the cell (j - a, l - 1) then: its column is the (j - a)th.
void LookaheadWindow::Advance(const VerifiedProposal& verified, std::span<const Token> said) {
  const int accepted = verified.proposal->Depth(verified.outcome.node);
  position_ += Size(accepted) + 1;
  for (int j = 0; j < columns_; ++j) {
    const int from = j + accepted;
    if (from >= columns_) {
      Draw(verified.tokens, j, 0);
      continue;
    }
    for (int l = 0; l + 1 < levels_; ++l) At(j, l) = At(from, l + 1);
    if (said[from] >= 0) {
      At(j, levels_ - 1) = said[from];
    } else {
      Draw(verified.tokens, j, levels_ - 1);
    }
  }
}

// The paper begins with random tokens; a piece of the text is a likelier trajectory.
void LookaheadWindow::Draw(std::span<const Token> tokens, int column, int level) {
  const std::uint64_t draw =
      PhiloxDraw(seed_, position_, static_cast<std::uint32_t>(column), NoisePurpose::kDrafting);
  const std::size_t begin = (draw * tokens.size()) >> 32;
  for (int l = level; l < levels_; ++l) At(column, l) = tokens[(begin + l) % tokens.size()];
}

// W columns, as many levels as G n-grams of that length leave room for, and G, within a number of
// nodes; where that is too few for all, columns and n-grams go in equal parts, n-grams first.
struct LookaheadShape {
  int columns = 0;  // W
  int levels = 0;   // K = N - 1
  int guesses = 0;  // G
};

LookaheadShape ShapeWithin(int nodes, int window, int guesses) {
  const int wanted = window + guesses;
  if (nodes <= 0 || wanted <= 0) return {};
  const int levels = std::clamp(nodes / wanted, 1, NgramPool::kMaxLength);
  const int chains = std::min(wanted, nodes / levels);
  const int columns = (chains * window + wanted - 1) / wanted;
  return {.columns = columns, .levels = levels, .guesses = chains - columns};
}

// Lookahead decoding (Fu et al., 2024, "Break the sequential dependency of LLM inference using
// lookahead decoding"). The lookahead branch, which makes n-grams, and the verification branch,
// which are n-grams that begin with the root, are one token tree. Unlike the paper's: tokens are
// chosen by the noise of their position at any temperature, new columns are pieces of the text,
// and where several tokens are accepted the window moves on by as many columns.
class LookaheadDrafter : public Drafter {
 public:
  explicit LookaheadDrafter(const DrafterParts& parts)
      : choice_(parts.backend, parts.vocabulary), pools_([] { return NgramPool(); }) {}

  void Propose(std::span<DraftContext> contexts) override {
    for (const DraftContext& context : contexts) Propose(context);
  }

  void Observe(const VerifiedProposal& verified) override {
    const auto window = windows_.find(verified.sequence);
    if (window == windows_.end()) return;
    NgramPool& pool = pools_.Use(verified.scope);
    window->second.Observe(verified, &choice_, [&](std::span<const Token> ngram) {
      pool.Insert(ngram.front(), ngram.subspan(1));
    });
  }

  void Forget(SequenceId sequence) override { windows_.erase(sequence); }

 private:
  void Propose(const DraftContext& context) {
    Proposal& proposal = *context.proposal;
    proposal.Clear();
    const int nodes = std::min(context.max_nodes, kMaxProposal);
    const LookaheadShape shape = ShapeWithin(nodes, context.window, context.guesses);
    if (shape.levels == 0) return;
    const std::size_t length = std::min(context.lookahead, shape.levels);
    for (const auto ngram :
         pools_.Use(context.scope).Latest(context.tokens.back(), shape.guesses)) {
      int node = 0;
      for (const Token token : ngram.first(std::min(length, ngram.size()))) {
        node = Grow(&proposal, node, token);
      }
    }
    LookaheadWindow& window = windows_[context.sequence];
    window.Fit(context.tokens, context.sampling->seed, shape.columns, shape.levels);
    window.AppendTo(context.lookahead, &proposal);
    if (proposal.size() > 0) proposal.source = ProposalSource::Of(DrafterId::kLookahead);
  }

  TargetChoice choice_;
  PerScope<NgramPool> pools_;
  std::unordered_map<SequenceId, LookaheadWindow> windows_;
};

}  // namespace

std::unique_ptr<Drafter> MakeLookaheadDrafter(const DrafterParts& parts) {
  return std::make_unique<LookaheadDrafter>(parts);
}

}  // namespace foretoken
