#include "door/assembly/members.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/draft/model/model_drafter.h"

namespace foretoken {
namespace {

constexpr std::string_view kStages = "stages";
constexpr std::string_view kEnsemble = "ensemble";
// What drafters of texts give together: what a grammar forces and what the text copies, what
// followed in other texts, in a datastore, and what the target itself held likely behind each
// token.
constexpr std::array kTexts = {DrafterId::kSuffix, DrafterId::kRecycle, DrafterId::kProtocol,
                               DrafterId::kRetrieval};

template <typename... Values>
Error Wrong(std::string_view field, fmt::format_string<Values...> sentence, Values&&... values) {
  return InvalidInput(fmt::format(sentence, std::forward<Values>(values)...), std::string(field));
}

std::vector<DrafterId> LoadedDrafts(std::size_t draft_models) {
  const std::size_t count = std::min(draft_models, kDraftModels.size());
  return {kDraftModels.begin(), kDraftModels.begin() + count};
}

// What holds for any member.
Status CheckMembers(std::string_view field, std::span<const DrafterId> members,
                    std::size_t draft_models) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    const DrafterId id = members[i];
    const DrafterInfo& info = InfoOf(id);
    if (info.needs == DrafterNeeds::kDrafters) {
      return Wrong(field, "{} names {}, which is made of other drafters itself", field, info.name);
    }
    if (info.before.empty() || info.shape == ProposalShape::kWindow) {
      return Wrong(field, "{} names {}, which proposes nothing that others could go on with", field,
                   info.name);
    }
    if (IsDraftModel(id) && DraftIndex(id) >= draft_models) {
      return Wrong(field, "{} names {}, and the draft models that are loaded are {}", field,
                   info.name, draft_models);
    }
    if (std::find(members.begin(), members.begin() + i, id) != members.begin() + i) {
      return Wrong(field, "{} names {} twice", field, info.name);
    }
  }
  return {};
}

Result<std::vector<DrafterId>> Stages(const EngineConfig& config, std::size_t draft_models) {
  std::vector<DrafterId> stages = config.stages;
  if (stages.empty()) {
    if (draft_models == 0) {
      return Wrong(kStages, "mode staged drafts with a draft model, and none is loaded");
    }
    stages = LoadedDrafts(draft_models);
    stages.push_back(DrafterId::kNgram);
  }
  FT_RETURN_IF_ERROR(CheckMembers(kStages, stages, draft_models));
  if (stages.size() < 2) {
    return Wrong(kStages, "stages names {} alone: behind it there must be one that drafts for it",
                 InfoOf(stages.front()).name);
  }
  const auto last = stages.end() - 1;
  const auto text = std::find_if_not(stages.begin(), last, IsDraftModel);
  if (text == last) return stages;
  return Wrong(kStages, "stages names {} before others, and only draft models can be drafted for",
               InfoOf(*text).name);
}

Result<std::vector<DrafterId>> Ensemble(const EngineConfig& config, std::size_t draft_models,
                                        bool asked) {
  std::vector<DrafterId> members = config.ensemble;
  if (members.empty()) {
    if (asked) members = LoadedDrafts(draft_models);
    members.insert(members.end(), kTexts.begin(), kTexts.end());
  }
  FT_RETURN_IF_ERROR(CheckMembers(kEnsemble, members, draft_models));
  if (config.verification != Verification::kRejection) return members;
  // Whether a token of theirs is proposed would depend on what is drawn.
  std::erase_if(members, [](DrafterId id) {
    return InfoOf(id).distribution == ProposalDistribution::kDrawn;
  });
  if (!members.empty()) return members;
  return Wrong(kEnsemble,
               "ensemble names draft models alone, which under rejection verification cannot be "
               "part of one: add a drafter of texts, like ngram");
}

}  // namespace

Result<MembersById> MembersOf(std::span<const Mode> asked, std::span<const Mode> offered,
                              const EngineConfig& config, std::size_t draft_models) {
  MembersById members;
  for (const Mode mode : offered) {
    if (!mode.before()) continue;
    if (mode.drafter == DrafterId::kStaged) {
      FT_ASSIGN_OR_RETURN(members[mode.drafter], Stages(config, draft_models));
    } else if (mode.drafter == DrafterId::kEnsemble) {
      const bool named = std::ranges::find(asked, mode) != asked.end();
      FT_ASSIGN_OR_RETURN(members[mode.drafter], Ensemble(config, draft_models, named));
    }
  }
  return members;
}

bool IsMember(DrafterId id, const MembersById& members) {
  return std::ranges::any_of(members, [id](const std::vector<DrafterId>& of_one) {
    return std::ranges::find(of_one, id) != of_one.end();
  });
}

Status CheckStage(DrafterId id, const ModelConfig& draft, bool by_text) {
  if (by_text) {
    return Wrong(kStages, "{} cannot be a stage: it drafts by text, and stages share their tokens",
                 InfoOf(id).name);
  }
  if (CanBeStage(draft)) return {};
  return Wrong(kStages,
               "{} cannot be a stage: it reads states of the target or says several tokens in a "
               "pass, and a stage reads tokens alone and says one",
               InfoOf(id).name);
}

}  // namespace foretoken
