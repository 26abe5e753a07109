#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "apps/foretoken/server/http/http_message.h"
#include "base/result.h"

namespace foretoken::server {

/// A line for each request: when, who, what, status, milliseconds, its id, and what its handler
/// says (model, tokens of prompt + output, mode, proposed tokens that were accepted).
class AccessLog {
 public:
  /// Appends to a file, a new one being its owner's alone; an error where it cannot be opened.
  /// Where it cannot be written later, one sentence on standard error says so. `path` empty and not
  /// `verbose`: writes nothing; `verbose` writes to standard error as well.
  static Result<AccessLog> Open(const std::string& path, bool verbose);

  void Write(const HttpAccess& access);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  bool verbose_ = false;
  bool failed_ = false;  // The last line could not be written.
};

}  // namespace foretoken::server
