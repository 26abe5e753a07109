#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace foretoken {

/// A directory of its own that goes with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    static std::atomic<int> count = 0;
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("foretoken_tokenizer_{}_{}", getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

inline std::string Slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  return stream.str();
}

/// The whole text of `tokens`, by the incremental decoder.
inline std::string DecodeAll(const Tokenizer& tokenizer, const std::vector<Token>& tokens) {
  IncrementalDecoder decoder(&tokenizer);
  std::string text;
  for (const Token token : tokens) text += decoder.Push(token);
  return text + decoder.Finish();
}

/// Loads `directory`, or fails the test.
inline std::unique_ptr<Tokenizer> MustLoad(const std::filesystem::path& directory) {
  auto tokenizer = Tokenizer::Load(directory);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

}  // namespace foretoken
