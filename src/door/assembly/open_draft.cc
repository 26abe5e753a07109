#include "door/assembly/open_draft.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "base/numbers/sha256.h"
#include "core/model/drafters/learned_draft.h"
#include "core/model/drafters/own_drafter.h"
#include "core/model/open_checkpoint.h"
#include "core/model/self/self_draft.h"
#include "core/weights/requantize.h"
#include "door/assembly/fit_draft.h"

namespace foretoken {
namespace {

Result<OpenedModel> OpenLearned(Checkpoint folder, const ModelSource& source,
                                const DraftedTarget& target, std::vector<std::string>* notices) {
  if (target.path.empty()) {
    return Invalid("{}: reads the states of a trained target, but the target has random weights",
                   source.path);
  }
  FT_ASSIGN_OR_RETURN(const Checkpoint files, OpenCheckpoint(target.path, ""));
  FT_ASSIGN_OR_RETURN(LearnedDraft draft,
                      ReadDrafter(source.own_drafter, std::move(folder), files, target.config));
  if (!source.weights.empty()) {
    FT_ASSIGN_OR_RETURN(const WeightType type, ParseWeightType(source.weights));
    draft.checkpoint = Requantize(std::move(draft.checkpoint), type, MixBasisOf(draft.config));
  }
  if (notices != nullptr) notices->insert(notices->end(), draft.notes.begin(), draft.notes.end());
  // What it shares with the target is part of what it computes.
  OpenedModel opened;
  opened.identity =
      ModelIdentity::Of(Sha256Hex(draft.checkpoint.Fingerprint() + files.Fingerprint()),
                        target.tokenizer == nullptr ? "" : target.tokenizer->fingerprint());
  opened.config = std::move(draft.config);
  opened.tokenizer = target.tokenizer;
  opened.checkpoint = std::move(draft.checkpoint);
  opened.translation = std::move(draft.translation);
  opened.draft_vocabulary = source.draft_vocabulary;
  return LimitDraft(target.config, target.tokenizer.get(), std::move(opened));
}

// What a draft with other tokens is told of.
void AddNotice(std::string notice, std::vector<std::string>* notices) {
  if (notices != nullptr && !notice.empty()) notices->push_back(std::move(notice));
}

Result<OpenedModel> OpenUnlimited(const DraftedTarget& target, const ModelSource& source,
                                  std::optional<bool> by_text, std::vector<std::string>* notices) {
  const bool own = !source.own_drafter.empty() && !IsSelfDraft(source.own_drafter);
  if (own || std::filesystem::exists(source.path)) {
    FT_ASSIGN_OR_RETURN(Checkpoint folder, Checkpoint::Open(source.path));
    if (own || IsLearnedDraft(folder)) {
      if (by_text.value_or(false)) {
        return Invalid(
            "{}: reads the target's states and has its tokens, and cannot draft by text: leave "
            "--draft-by-text out",
            source.path);
      }
      return OpenLearned(std::move(folder), source, target, notices);
    }
  }
  FT_ASSIGN_OR_RETURN(OpenedModel draft, OpenModel(source));
  if (by_text.value_or(SharesTooLittle(target.tokenizer.get(), draft.tokenizer.get()))) {
    FT_ASSIGN_OR_RETURN(draft, FitByText(target.tokenizer, std::move(draft)));
    AddNotice(fmt::format("the draft drafts by text, {}",
                          by_text.has_value() ? "as it was asked to"
                                              : "since it has too few of the target's tokens"),
              notices);
    return draft;
  }
  std::string notice;
  FT_ASSIGN_OR_RETURN(draft, FitDraft(target.config, target.tokenizer, std::move(draft), &notice));
  AddNotice(std::move(notice), notices);
  return draft;
}

}  // namespace

Result<OpenedModel> OpenDraftFor(const DraftedTarget& target, const ModelSource& source,
                                 std::optional<bool> by_text, std::optional<DraftWindow> window,
                                 std::vector<std::string>* notices) {
  FT_ASSIGN_OR_RETURN(OpenedModel draft, OpenUnlimited(target, source, by_text, notices));
  if (!window.has_value()) return draft;
  return LimitWindow(*window, std::move(draft));
}

bool NeedsTargetFiles(const ModelConfig& draft, const Translation* translation) {
  return translation != nullptr || draft.feature.there();
}

}  // namespace foretoken
