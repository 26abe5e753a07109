#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// How a model on a hub is called: ORG/NAME[@REVISION][:QUANT|:FILE].
struct ModelName {
  std::string repository;                     ///< "ORG/NAME", or of some old ones "NAME".
  std::optional<std::string> named_revision;  ///< A branch, a tag or a commit.
  std::string part;                           ///< "Q4_K_M", or a GGUF file; empty: the usual.

  std::string revision() const { return named_revision.value_or("main"); }
  bool names_file() const;
  /// As it was written.
  std::string Text() const;
};

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
