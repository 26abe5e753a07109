#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "core/model/config/model_config.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/engine.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

/// Makes a draft one that reads and says the tokens of a target of this configuration and
/// tokenizer, matched by MatchVocabularies; what the draft has not it never says, nor what is not
/// of its DraftVocabulary, whose rows its head then lacks. Nothing changes where they have one
/// vocabulary and the draft says all of it. Refuses a draft that has too few of the target's
/// tokens, and a ranking of other tokens than the target's. `notice`, which may be null, is told
/// where the draft has another vocabulary.
Result<OpenedModel> FitDraft(const ModelConfig& target,
                             const std::shared_ptr<const Tokenizer>& tokenizer, OpenedModel draft,
                             std::string* notice = nullptr);

/// Makes a draft one that drafts by text (TextLink), for a target of this tokenizer: whatever its
/// tokens, they stay. Refuses what has no tokenizer, and a DraftVocabulary, which is about the
/// target's tokens.
Result<OpenedModel> FitByText(const std::shared_ptr<const Tokenizer>& tokenizer, OpenedModel draft);

/// Whether FitDraft would refuse the draft, since it has too few of the target's tokens.
bool SharesTooLittle(const Tokenizer* target, const Tokenizer* draft);

/// The last part of FitDraft by itself: a draft that has the target's tokens says those of its
/// DraftVocabulary. Refuses a draft that was made to say a part of them.
Result<OpenedModel> LimitDraft(const ModelConfig& target, const Tokenizer* tokenizer,
                               OpenedModel draft);

/// Attention of the draft sees the window only, in every layer where it saw more before. Refuses
/// windows of nothing, fewer anchors than none, and drafts without attention.
Result<OpenedModel> LimitWindow(const DraftWindow& window, OpenedModel draft);

}  // namespace foretoken
