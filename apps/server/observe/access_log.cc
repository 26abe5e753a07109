#include "server/observe/access_log.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/utf8.h"

namespace foretoken::server {
namespace {

// A path as one word, whatever bytes it was sent with.
std::string Word(std::string_view text) {
  std::string word = Shortened(text);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c <= ' ' || c >= '\x7f'; }, '?');
  return word;
}

}  // namespace

Result<AccessLog> AccessLog::Open(const std::string& path, bool verbose) {
  AccessLog log;
  log.verbose_ = verbose;
  if (path.empty()) return log;
  log.file_.reset(std::fopen(path.c_str(), "ae"));
  if (log.file_ == nullptr) {
    return InvalidInput(fmt::format("cannot write the log '{}': {}", path, std::strerror(errno)));
  }
  return log;
}

void AccessLog::Write(const HttpAccess& access) const {
  if (file_ == nullptr && !verbose_) return;
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  const std::string line =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z {} {} {} {} {:.1f}ms id={}{}{}\n",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms.count() % 1000,
                  access.head.peer, Word(access.head.method), Word(access.head.path), access.status,
                  access.milliseconds, access.head.id, access.note.empty() ? "" : " ", access.note);
  for (std::FILE* file : {file_.get(), verbose_ ? stderr : nullptr}) {
    if (file == nullptr) continue;
    std::fwrite(line.data(), 1, line.size(), file);
    std::fflush(file);
  }
}

}  // namespace foretoken::server
