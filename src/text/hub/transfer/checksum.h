#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace foretoken {

/// SHA-256 of a file's first `size` bytes, or the SHA-1 that git gives to a file with that content,
/// in hexadecimal digits. `read` is told how many bytes have been read, and ends it with kCancelled
/// by returning false.
enum class HashKind { kSha256, kGitSha1 };
Result<std::string> HashOfFile(const std::filesystem::path& path, std::uint64_t size, HashKind kind,
                               const std::function<bool(std::uint64_t)>& read);

}  // namespace foretoken
