#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/engine/round/round.h"
#include "core/engine/scheduler.h"

namespace foretoken {

/// A sequence over a vocabulary of 16 tokens whose prompt is computed but for its last token, with
/// KV blocks in reverse order so that slots are not positions. `listener` may be null.
inline std::unique_ptr<Sequence> DecodingSequence(SequenceId id, std::vector<Token> prompt,
                                                  const SpeculationPlan& plan = {},
                                                  RequestListener* listener = nullptr) {
  const auto computed = static_cast<std::int32_t>(prompt.size()) - 1;
  Request request{.prompt = std::move(prompt), .stop = {.max_tokens = 8}, .listener = listener};
  auto sequence = std::make_unique<Sequence>(id, std::move(request), plan, /*vocabulary=*/16,
                                             /*max_context=*/64, std::vector<Token>{},
                                             /*tokenizer=*/nullptr);
  sequence->kv.blocks = {3, 1};
  sequence->kv.committed = computed;
  sequence->pass_rows = 1;
  sequence->verifies = true;
  return sequence;
}

/// Admits, and appends the new ones to `admitted`.
inline void Admit(Scheduler* scheduler, std::vector<Sequence*>* admitted) {
  for (const auto& sequence : scheduler->Admit()) admitted->push_back(sequence.get());
}

}  // namespace foretoken
