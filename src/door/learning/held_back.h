#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "core/backend/taps.h"
#include "core/draft/drafter.h"
#include "door/assembly/loaded_model.h"
#include "door/learning/traffic.h"
#include "foretoken/engine.h"

namespace foretoken {

/// What a draft is judged by: how far it would have been right.
struct DraftScore {
  std::int64_t tokens = 0;  ///< Tokens of output that rounds would have emitted.
  std::int64_t rounds = 0;  ///< The rounds that would have emitted these tokens.

  double tokens_per_round() const {
    return rounds == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(rounds);
  }
};

/// A draft that is loaded to be judged, on a device of its own.
class JudgedDraft {
 public:
  /// Loads a draft of an engine over `target`, whose taps have that shape. `draft` as in
  /// Engine::PrepareDraft.
  static Result<std::unique_ptr<JudgedDraft>> Load(LoadedModel* target, const DraftOptions& draft,
                                                   const TapShape& taps);

  /// Drafts chains of `lookahead` along the text, as mode sd would have: from its true states and
  /// under its own noise. Runs on the draft's cores; from one thread at a time.
  DraftScore Score(const StatedText& text, int lookahead);

 private:
  JudgedDraft() = default;

  TapShape taps_;
  int vocabulary_ = 0;  // The target's.
  std::shared_ptr<LoadedModel> loaded_;
  SequenceId last_ = 0;
};

/// Whether `other` is better than what is in use, by their scores of the same texts: it emits more
/// tokens a round, and by more than the standard error of the texts' differences.
bool IsBetter(std::span<const DraftScore> other, std::span<const DraftScore> in_use);

/// Their sum.
DraftScore Total(std::span<const DraftScore> scores);

}  // namespace foretoken
