#pragma once

#include <filesystem>
#include <limits>
#include <string>

#include "base/result.h"

namespace foretoken {

/// `bytes` of a file that people write, as UTF-8: without the mark (BOM) that some editors put at
/// its beginning, and brought from UTF-16 where such a mark says that it is that. Other bytes stay
/// as they are. An error's message is the reason alone, for a sentence of the caller's.
Result<std::string> DecodeText(std::string bytes);

/// The text of a file (ReadFile, DecodeText).
Result<std::string> ReadText(const std::filesystem::path& path,
                             std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace foretoken
