#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>

#include "base/result.h"

namespace foretoken {

/// The content of a file, or of a pipe up to its end: its first `most` bytes where there are more.
/// An error's message is the reason alone ("Permission denied"), for a sentence of the caller's.
Result<std::string> ReadFile(const std::filesystem::path& path,
                             std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace foretoken
