#include "apps/foretoken/server/observe/hidden_folders.h"

#include <algorithm>

namespace foretoken::server {
namespace {

std::string_view LastName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string WithoutFolders(std::string_view sentence) {
  std::string shown;
  while (!sentence.empty()) {
    const bool quoted = sentence.front() == '\'';
    const std::size_t close = quoted ? sentence.find('\'', 1) : sentence.npos;
    const bool begins = shown.empty() || shown.back() == ' ' || shown.back() == '(';
    if (close != sentence.npos) {
      shown += '\'';
      shown += LastName(sentence.substr(1, close - 1));
      shown += '\'';
      sentence.remove_prefix(close + 1);
    } else if (sentence.front() == '/' && begins && !sentence.starts_with("/ ")) {
      std::size_t end = std::min(sentence.find_first_of(" \t,;)"), sentence.size());
      while (end > 1 && (sentence[end - 1] == ':' || sentence[end - 1] == '.')) --end;
      shown += LastName(sentence.substr(0, end));
      sentence.remove_prefix(end);
    } else {
      shown += sentence.front();
      sentence.remove_prefix(1);
    }
  }
  return shown;
}

}  // namespace foretoken::server
