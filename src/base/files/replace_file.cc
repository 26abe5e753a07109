#include "base/files/replace_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/text/parse_number.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

Error WritingFailed(const fs::path& path) {
  const int reason = errno;
  return {reason == ENOSPC || reason == EIO ? ErrorCode::kUnavailable : ErrorCode::kInvalidInput,
          fmt::format("cannot write '{}': {}", path.string(), std::strerror(reason))};
}

// A file that is being written; closed when this goes.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int get() const { return descriptor_; }
  // Each is false, with errno, where it fails.
  bool Write(std::string_view content) const {
    while (!content.empty()) {
      const ssize_t written =
          write(descriptor_, content.data(), std::min(content.size(), std::size_t{1} << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(written);
    }
    return true;
  }
  bool Close() { return close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

// The open file of this process that a path names, as /dev/stdout and /dev/fd/3 do. It may be a
// regular file, behind whose back another one would take its place.
std::optional<int> DescriptorOf(fs::path path) {
  constexpr int kMostLinks = 16;
  if (path == "-") return STDOUT_FILENO;
  const fs::path own = fmt::format("/proc/{}/fd", getpid());
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(path, error).parent_path(), error);
    int number = 0;
    if (folder == own && ParseNumber(path.filename().string(), &number)) return number;
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = folder / target;
  }
  return std::nullopt;
}

// Creates a file beside `target` under a name that nobody has, and says which. A link that somebody
// has put there is a name that is taken.
int CreateBeside(const fs::path& target, mode_t rights, std::string* name) {
  constexpr int kMostTries = 1000;  // Killed writers leave some behind.
  int descriptor = -1;
  for (int i = 0; i < kMostTries && descriptor < 0; ++i) {
    *name = fmt::format("{}.{}-{}.tmp", target.string(), getpid(), i);
    descriptor = open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, rights);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  return descriptor;
}

// Gives a new file the rights of the one that it will replace.
bool TakeRights(const OpenFile& file, const fs::path& target) {
  struct stat old = {};
  return stat(target.c_str(), &old) != 0 || fchmod(file.get(), old.st_mode & 07777) == 0;
}

// Makes the renaming survive a loss of power, where the file system can.
void SyncFolder(const fs::path& folder) {
  const OpenFile opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0) static_cast<void>(fsync(opened.get()));
}

}  // namespace

struct FileReplacement::State {
  explicit State(int descriptor) : file(descriptor) {}

  OpenFile file;
  fs::path path;          // As given, for errors.
  fs::path target;        // What is replaced.
  std::string temporary;  // Empty: `path` itself is written.
};

FileReplacement::FileReplacement(std::unique_ptr<State> state) : state_(std::move(state)) {}
FileReplacement::FileReplacement(FileReplacement&& other) noexcept = default;

FileReplacement::~FileReplacement() {
  if (state_ != nullptr && !state_->temporary.empty()) unlink(state_->temporary.c_str());
}

Result<FileReplacement> FileReplacement::Begin(const fs::path& path, mode_t rights) {
  std::error_code ignored;
  const std::optional<int> descriptor = DescriptorOf(path);
  const fs::file_status old = fs::status(path, ignored);
  const bool special = fs::exists(old) && !fs::is_regular_file(old) && !fs::is_directory(old);
  std::unique_ptr<State> state;
  if (descriptor || special) {
    std::fflush(stdout);  // What was printed comes first.
    state = std::make_unique<State>(descriptor ? dup(*descriptor)
                                               : open(path.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    const fs::path linked = fs::weakly_canonical(path, ignored);
    const fs::path target = linked.empty() ? path : linked;
    std::string temporary;
    state = std::make_unique<State>(CreateBeside(target, rights, &temporary));
    state->target = target;
    if (state->file.get() >= 0) state->temporary = temporary;
  }
  if (state->file.get() < 0) return WritingFailed(path);
  state->path = path;
  return FileReplacement(std::move(state));
}

Status FileReplacement::Write(std::string_view content) {
  if (!state_->file.Write(content)) return WritingFailed(state_->path);
  return {};
}

Status FileReplacement::Finish() {
  const fs::path& target = state_->target;
  OpenFile& file = state_->file;
  if (state_->temporary.empty()) {
    if (!file.Close()) return WritingFailed(state_->path);
    return {};
  }
  const bool done = TakeRights(file, target) && fsync(file.get()) == 0 && file.Close() &&
                    rename(state_->temporary.c_str(), target.c_str()) == 0;
  if (!done) return WritingFailed(state_->path);
  state_->temporary.clear();
  SyncFolder(target.has_parent_path() ? target.parent_path() : fs::path("."));
  return {};
}

Status ReplaceFile(const fs::path& path, std::string_view content) {
  FT_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path));
  FT_RETURN_IF_ERROR(file.Write(content));
  return file.Finish();
}

}  // namespace foretoken
