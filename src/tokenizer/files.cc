#include "tokenizer/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace foretoken {

bool FileExists(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  return type != std::filesystem::file_type::not_found;
}

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t limit) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return InvalidInput(fmt::format("{} is not a readable file.", path.string()));
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    return InvalidInput(fmt::format("{} cannot be read: {}.", path.string(), error.message()));
  }
  if (size > limit) {
    return InvalidInput(
        fmt::format("{} has {} bytes; at most {} are accepted.", path.string(), size, limit));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content(size, '\0');
  if (!file.read(content.data(), static_cast<std::streamsize>(size))) {
    return InvalidInput(fmt::format("{} cannot be read: {}.", path.string(),
                                    errno != 0 ? std::strerror(errno) : "it ended early"));
  }
  return content;
}

}  // namespace foretoken
