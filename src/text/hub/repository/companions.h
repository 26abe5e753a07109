#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// What a GGUF file of a repository is, as far as names tell.
enum class GgufKind {
  kModel,
  kDrafter,  ///< Drafts for the model beside it: "MTP/mtp-X-Q8_0.gguf", "X-DFlash-Q8_0.gguf".
  kOther     ///< A projector of images, a matrix of importance, an adapter, a control vector ...
};

/// The kinds of a repository's GGUF files. A word sets a file apart only where others lack it: of a
/// repository whose files all have "MTP" in their names, none is a drafter for another. Projectors
/// and matrices of importance are never models.
std::vector<GgufKind> KindsOf(std::span<const std::string> paths);

/// The kind of one of which the others are not in sight: any word may set it apart.
GgufKind SeemingKindOf(std::string_view path);

}  // namespace foretoken
