#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// What a model is wanted for: repositories may have drafters beside the model that they are for.
enum class ModelUse { kTarget, kDraft };

/// How a model on a hub is called: ORG/NAME[@REVISION][:QUANT|:FILE].
struct ModelName {
  std::string repository;                     ///< "ORG/NAME", or of some old ones "NAME".
  std::optional<std::string> named_revision;  ///< A branch, a tag or a commit.
  std::string part;                           ///< "Q4_K_M", or a GGUF file; empty: the usual.
  ModelUse use = ModelUse::kTarget;

  std::string revision() const { return named_revision.value_or("main"); }
  bool names_file() const;
  /// In that form, however it was written.
  std::string Text() const;
};

/// Reads such a name. It may be as people paste it: behind hf.co/ or huggingface.co/, as the
/// address of the model's page, of a revision's (/tree/) or of a file (/blob/, /resolve/), with a
/// slash at its end, or with ":latest", which says nothing.
Result<ModelName> ParseModelName(std::string_view text);

/// Whether this is "ORG/NAME" or "NAME" as hubs allow it: no "--", by which folders of the cache
/// separate the two, and no "..".
bool IsRepository(std::string_view text);

/// Whether a text is the full name of a commit: 40 lower-case hexadecimal digits.
bool IsCommit(std::string_view text);

/// Whether a relative path stays below the folder that it is for, on every system: no empty part,
/// none of dots, no backslash and nothing unprintable.
bool IsSafePath(std::string_view path);

}  // namespace foretoken
