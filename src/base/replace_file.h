#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// Writes a file so that whoever looks, and whatever happens, finds its old content or all of the
/// new one: beside it under a name that no other writer has, synced, then renamed. What a link
/// names is replaced, not the link. What is no regular file (/dev/stdout, a pipe) is written
/// directly; "-" is the standard output.
Status ReplaceFile(const std::filesystem::path& path, std::string_view content);

}  // namespace foretoken
