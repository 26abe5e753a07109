#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/draft/drafter.h"
#include "core/model/model.h"
#include "foretoken/mode.h"

namespace foretoken {

class TextLink;

/// One of the drafters that another is made of.
struct DrafterMember {
  DrafterId id{};
  std::shared_ptr<Model> draft = nullptr;  ///< As DrafterParts'.
  TapPart taps;  ///< What it reads, within what DraftContext::taps has for the whole.
  std::shared_ptr<const TextLink> text = nullptr;  ///< As DrafterParts'.
  bool on_target_kv = false;                       ///< As DrafterParts'.
};

/// What drafters are made of; each takes what it needs.
struct DrafterParts {
  int vocabulary = 0;
  int max_sequences = 0;  ///< The most sequences that are decoded together.
  int max_context = 0;    ///< Tokens of a sequence.
  /// The draft model of drafters that need one; on their device.
  std::shared_ptr<Model> draft = nullptr;
  /// The draft is some of the target's layers and keeps no keys and values but
  /// DraftContext::target_kv. Not of what drafts behind tokens that the target has not committed.
  bool on_target_kv = false;
  /// Where the draft drafts by text; else null, and it has the target's tokens.
  std::shared_ptr<const TextLink> text = nullptr;
  Backend* backend = nullptr;               ///< The target's backend; outlives them.
  std::vector<DrafterMember> members = {};  ///< The members of drafters that are made of others.
  /// A token's text, empty of special ones; null where there is no tokenizer.
  std::function<std::string_view(Token)> bytes_of = nullptr;
  /// The tokens of a text that follows others; null likewise.
  std::function<std::vector<Token>(std::string_view)> tokens_of = nullptr;

  /// What a member is made of.
  DrafterParts Of(const DrafterMember& member) const {
    return {.vocabulary = vocabulary,
            .max_sequences = max_sequences,
            .max_context = max_context,
            .draft = member.draft,
            .on_target_kv = member.on_target_kv,
            .text = member.text,
            .backend = backend,
            .bytes_of = bytes_of,
            .tokens_of = tokens_of};
  }
};

/// The drafter of an entry of the registry (foretoken/tables/drafters.inc).
std::unique_ptr<Drafter> MakeDrafter(DrafterId id, const DrafterParts& parts);

// Each is defined in its drafter's folder.
#define FORETOKEN_DRAFTER(Id, ...) std::unique_ptr<Drafter> Make##Id##Drafter(const DrafterParts&);
#include "foretoken/tables/drafters.inc"
#undef FORETOKEN_DRAFTER

}  // namespace foretoken
