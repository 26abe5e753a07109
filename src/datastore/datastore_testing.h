#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "datastore/datastore.h"
#include "foretoken/types.h"

namespace foretoken {

/// A new directory that is removed with its content when this goes; in memory where the system has
/// such a file system, since tests sync often.
class TestDirectory {
 public:
  TestDirectory() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    const bool in_memory =
        std::filesystem::is_directory(memory, error) && access(memory.c_str(), W_OK) == 0;
    std::string pattern =
        ((in_memory ? memory : std::filesystem::temp_directory_path()) / "datastore_test.XXXXXX")
            .string();
    const char* made = mkdtemp(pattern.data());
    FT_CHECK(made != nullptr, "{} cannot be made", pattern);
    path_ = made;
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

using Documents = std::vector<std::vector<Token>>;

/// Documents of `length` tokens on average whose tokens are skewed towards the small ones and
/// often repeat what came before, so that long matches occur.
inline Documents RandomDocuments(std::mt19937* random, int documents, int length, int vocabulary) {
  const auto below = [random](int n) { return static_cast<int>((*random)() % n); };
  Documents result(documents);
  std::vector<Token> all;
  for (auto& document : result) {
    const int tokens = below(2 * length);
    while (static_cast<int>(document.size()) < tokens) {
      if (!all.empty() && below(3) == 0) {
        const int begin = below(static_cast<int>(all.size()));
        const int end = std::min(begin + below(30), static_cast<int>(all.size()));
        document.insert(document.end(), all.begin() + begin, all.begin() + end);
      } else {
        document.push_back(below(below(vocabulary) + 1));
      }
    }
    all.insert(all.end(), document.begin(), document.end());
  }
  return result;
}

/// The continuations of `pattern` in all documents, at most `length` tokens each, in the order of
/// the documents: the plainest way to find them.
inline Documents NaiveContinuations(const Documents& documents, const std::vector<Token>& pattern,
                                    std::size_t length) {
  Documents found;
  for (const auto& document : documents) {
    for (std::size_t i = 0; i + pattern.size() <= document.size(); ++i) {
      if (!std::equal(pattern.begin(), pattern.end(), document.begin() + i)) continue;
      const std::size_t begin = i + pattern.size();
      const std::size_t end = std::min(begin + length, document.size());
      found.emplace_back(document.begin() + begin, document.begin() + end);
    }
  }
  return found;
}

/// All documents of a snapshot, in order.
inline Documents DocumentsOf(const Snapshot& snapshot) {
  Documents documents;
  for (const auto& segment : snapshot.segments) {
    segment->VisitDocuments([&](std::span<const Token> document) {
      documents.emplace_back(document.begin(), document.end());
    });
  }
  return documents;
}

}  // namespace foretoken
