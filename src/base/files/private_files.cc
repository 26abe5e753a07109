#include "base/files/private_files.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace foretoken {

Status MakePrivateFolders(const std::filesystem::path& folder) {
  constexpr mode_t kPrivateFolder = 0700;
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
  FT_RETURN_IF_ERROR(MakePrivateFolders(folder.parent_path()));
  if (mkdir(folder.c_str(), kPrivateFolder) == 0) return {};
  const int reason = errno;
  if (std::filesystem::is_directory(folder, ignored)) return {};  // Another process was faster.
  return Error{
      reason == ENOSPC || reason == EIO ? ErrorCode::kUnavailable : ErrorCode::kInvalidInput,
      fmt::format("{} cannot be made: {}", folder.string(), std::strerror(reason))};
}

bool IsReadableByAll(const std::filesystem::path& file) {
  struct stat status = {};
  return stat(file.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0;
}

}  // namespace foretoken
