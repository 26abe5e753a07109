#include "text/tokenizer/files.h"

#include <system_error>

#include "base/files/read_file.h"

namespace foretoken {

bool FileExists(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  return type != std::filesystem::file_type::not_found;
}

Result<std::string> ReadTokenizerFile(const std::filesystem::path& path, std::size_t limit) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Invalid("{} is not a readable file.", path.string());
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    return Invalid("{} cannot be read: {}.", path.string(), error.message());
  }
  if (size > limit) {
    return Invalid("{} has {} bytes; at most {} are accepted.", path.string(), size, limit);
  }
  Result<std::string> content = ReadFile(path, limit);
  if (content.ok()) return content;
  return Invalid("{} cannot be read: {}.", path.string(), content.error().message);
}

}  // namespace foretoken
