#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace foretoken {

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
  auto tokenizer = LoadTokenizerFolder(directory);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

}  // namespace foretoken
