#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace foretoken {

/// A file that is written part by part so that whoever looks, and whatever happens, finds its old
/// content or all of the new one: beside it under a name that no other writer has, synced, then
/// renamed. What a link names is replaced, not the link. What is no regular file (/dev/stdout, a
/// pipe) is written directly; "-" is the standard output. What is not finished is removed. A file
/// that is replaced keeps its rights; a new one has `rights`, as far as the umask lets it.
class FileReplacement {
 public:
  static constexpr mode_t kUsualRights = 0666;

  static Result<FileReplacement> Begin(const std::filesystem::path& path,
                                       mode_t rights = kUsualRights);
  ~FileReplacement();
  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;

  Status Write(std::string_view content);
  /// Puts it in its place. Nothing may be written afterwards.
  Status Finish();

 private:
  struct State;
  explicit FileReplacement(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Writes a whole file so.
Status ReplaceFile(const std::filesystem::path& path, std::string_view content);

}  // namespace foretoken
