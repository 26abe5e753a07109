#pragma once

#include <optional>
#include <span>

#include "door/assembly/loaded_model.h"
#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// A text that is said to be what a model made of a prompt, by shared noise.
struct Replay {
  std::span<const Token> prompt;  ///< Not empty.
  std::span<const Token> tokens;
  const SamplingParams* sampling = nullptr;  ///< With its constraint.
  bool drops_space = false;                  ///< As in ConstraintCursor.
  AdapterUse adapter = {};
};

/// Where a text first differs from the model's own.
struct Deviation {
  std::size_t at = 0;  ///< Its place among the tokens.
  Candidate written;   ///< Its score is -infinity where it may not come.
  Candidate chosen;    ///< Its token is -1 where the model's logits have no number among them.
};

/// Reads the text in one prefill and chooses each token again, as an engine does. Nothing where all
/// are the model's own. Runs on the model's device, on a thread of its own.
std::optional<Deviation> FindDeviation(const LoadedModel& loaded, const Replay& replay);

}  // namespace foretoken
