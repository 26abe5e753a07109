#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"

namespace foretoken {

/// The rights of files that hold what users say and are answered: their owner's alone. A folder or
/// file that is there keeps those which it has.
inline constexpr mode_t kPrivateFile = 0600;

/// Makes a folder that only its owner may enter, and those above it that are not there.
Status MakePrivateFolders(const std::filesystem::path& folder);

/// Whether every account of this machine may read a file.
bool IsReadableByAll(const std::filesystem::path& file);

}  // namespace foretoken
