#include "apps/foretoken/options/options.h"

#include <fmt/core.h>

#include "apps/foretoken/common/terminal.h"

namespace foretoken {

Status DatastoreChoice::Check(std::span<const Mode> modes) const {
  if (given()) return {};
  if (learn) return InvalidInput("--learn needs a folder to learn into: --datastore DIR");
  if (!tenant.empty()) return InvalidInput("--namespace is part of a datastore: --datastore DIR");
  for (const Mode mode : modes) {
    if (!mode.drafts() || InfoOf(mode.drafter).needs != DrafterNeeds::kDatastore) continue;
    return Invalid("mode {} looks in a datastore only: name one with --datastore DIR",
                   ModeName(mode));
  }
  return {};
}

std::vector<Mode> DatastoreChoice::ModesFor(Mode mode) const {
  std::vector<Mode> modes = {mode};
  if (!mode.planned() || !given()) return modes;
  for (const Mode other : kModes) {
    const bool looks = InfoOf(other.drafter).needs == DrafterNeeds::kTextAndDatastore;
    if (other.drafts() && looks) modes.push_back(other);
  }
  return modes;
}

void AddDatastoreOptions(CLI::App* app, DatastoreChoice* choice) {
  const OptionGroup add(app, "Datastore");
  add("--datastore", &choice->directory, "DIR",
      "Where retrieval (modes auto, sssd and rest, --fallback retrieval) looks besides the text "
      "itself: a folder that `foretoken datastore build` or --learn has filled");
  add("--learn", &choice->learn, "Add finished outputs to the datastore");
  add("--namespace", &choice->tenant, "NAME",
      "Whose outputs to read and to add to (default 'default'); others stay unseen");
}

Result<OpenDatastore> OpenChosen(const DatastoreChoice& choice, const LanguageModel& target) {
  OpenDatastore open;
  if (!choice.given()) return open;
  if (target.tokenizer() == nullptr) {
    return InvalidInput("--datastore needs a model with a tokenizer; a synthetic one has none");
  }
  FT_ASSIGN_OR_RETURN(open.folder, DatastoreFolder::Open(choice.directory, target, choice.learn,
                                                         [](std::string_view warning) {
                                                           PrintWarning(std::string(warning));
                                                         }));
  FT_ASSIGN_OR_RETURN(open.tenant, open.folder->Tenant(choice.tenant));
  return open;
}

}  // namespace foretoken
