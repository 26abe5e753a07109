#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace foretoken {

/// Tokenizer files beyond these sizes are refused before they are read or parsed.
inline constexpr std::size_t kMaxTokenizerFile = std::size_t{128} << 20;
inline constexpr std::size_t kMaxConfigFile = std::size_t{16} << 20;
/// More tokens than any vocabulary in use by an order of magnitude.
inline constexpr std::size_t kMaxTokens = std::size_t{4} << 20;
/// How many ids in a row may be unused: a tiny file must not make a huge table.
inline constexpr std::size_t kMaxIdGap = 65536;

/// The whole content of a regular file of at most `limit` bytes.
Result<std::string> ReadTokenizerFile(const std::filesystem::path& path, std::size_t limit);

/// Whether `path` is there at all (also where it cannot be read).
bool FileExists(const std::filesystem::path& path);

}  // namespace foretoken
