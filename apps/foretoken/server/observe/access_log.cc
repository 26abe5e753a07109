#include "apps/foretoken/server/observe/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/files/private_files.h"
#include "base/text/utf8.h"

namespace foretoken::server {
namespace {

// A path as one word, whatever bytes it was sent with.
std::string Word(std::string_view text) {
  std::string word = Shortened(text);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c <= ' ' || c >= '\x7f'; }, '?');
  return word;
}

// Writes a whole line; errno where that fails.
int Append(const std::string& line, std::FILE* file) {
  errno = 0;
  const bool written =
      std::fwrite(line.data(), 1, line.size(), file) == line.size() && std::fflush(file) == 0;
  return written ? 0 : errno;
}

}  // namespace

Result<AccessLog> AccessLog::Open(const std::string& path, bool verbose) {
  AccessLog log;
  log.verbose_ = verbose;
  if (path.empty()) return log;
  log.path_ = path;
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kPrivateFile);
  if (file < 0) {
    return Invalid("cannot write the log '{}': {}", path, std::strerror(errno));
  }
  log.file_.reset(fdopen(file, "a"));
  return log;
}

void AccessLog::Write(const HttpAccess& access) {
  if (file_ == nullptr && !verbose_) return;
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  const std::string line =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z {} {} {} {} {:.1f}ms id={}{}{}\n",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms.count() % 1000,
                  access.head.peer, Word(access.head.method), Word(access.head.path), access.status,
                  access.milliseconds, access.head.id, access.note.empty() ? "" : " ", access.note);
  if (verbose_) Append(line, stderr);
  if (file_ == nullptr) return;
  const int reason = Append(line, file_.get());
  if (reason != 0 && !failed_) {
    fmt::print(stderr,
               "foretoken: warning: cannot write the log '{}': {}; lines are lost until that works "
               "again\n",
               path_, std::strerror(reason));
  }
  failed_ = reason != 0;
}

}  // namespace foretoken::server
