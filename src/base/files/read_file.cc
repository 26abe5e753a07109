#include "base/files/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace foretoken {

Result<std::string> ReadFile(const std::filesystem::path& path, std::size_t most) {
  constexpr std::size_t kFirstBytes = 1 << 16;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content;
  // Whatever its size is said to be: a file may be a pipe, or grow.
  while (file && content.size() < most) {
    const std::size_t size = content.size();
    content.resize(size + std::min(most - size, std::max(kFirstBytes, size)));
    file.read(content.data() + size, static_cast<std::streamsize>(content.size() - size));
    content.resize(size + file.gcount());
  }
  if (!file.is_open() || file.bad()) {
    return InvalidInput(errno != 0 ? std::strerror(errno) : "it cannot be read");
  }
  content.shrink_to_fit();
  return content;
}

}  // namespace foretoken
