#include "foretoken/fill_marks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "foretoken/tokenizer.h"

namespace foretoken {
namespace {

using Mark = std::pair<std::string_view, Token FillMarks::*>;

// The names of StarCoder and Granite, Qwen and CodeGemma, DeepSeek, Code Llama, GLM.
constexpr Mark kMarks[] = {
    {"<fim_prefix>", &FillMarks::prefix},
    {"<fim-prefix>", &FillMarks::prefix},
    {"<|fim_prefix|>", &FillMarks::prefix},
    {"<｜fim▁begin｜>", &FillMarks::prefix},
    {"<PRE>", &FillMarks::prefix},
    {"▁<PRE>", &FillMarks::prefix},
    {"<|code_prefix|>", &FillMarks::prefix},
    {"<fim_suffix>", &FillMarks::suffix},
    {"<fim-suffix>", &FillMarks::suffix},
    {"<|fim_suffix|>", &FillMarks::suffix},
    {"<｜fim▁hole｜>", &FillMarks::suffix},
    {"<SUF>", &FillMarks::suffix},
    {"▁<SUF>", &FillMarks::suffix},
    {"<|code_suffix|>", &FillMarks::suffix},
    {"<fim_middle>", &FillMarks::middle},
    {"<fim-middle>", &FillMarks::middle},
    {"<|fim_middle|>", &FillMarks::middle},
    {"<｜fim▁end｜>", &FillMarks::middle},
    {"<MID>", &FillMarks::middle},
    {"▁<MID>", &FillMarks::middle},
    {"<|code_middle|>", &FillMarks::middle},
    {"<fim_pad>", &FillMarks::pad},
    {"<fim-pad>", &FillMarks::pad},
    {"<|fim_pad|>", &FillMarks::pad},
    {"<fim_repo>", &FillMarks::repository},
    {"<|fim_repo|>", &FillMarks::repository},
    {"<repo_name>", &FillMarks::repository},
    {"<|repo_name|>", &FillMarks::repository},
    {"<reponame>", &FillMarks::repository},
    {"<|file_sep|>", &FillMarks::file},
    {"<|file_separator|>", &FillMarks::file},
    {"<file_sep>", &FillMarks::file},
};

void Note(Token token, std::string_view name, FillMarks* marks) {
  if (!name.ends_with('>')) return;
  const auto* const mark = std::ranges::find(kMarks, name, &Mark::first);
  if (mark == std::end(kMarks)) return;
  Token& place = marks->*mark->second;
  if (place < 0) place = token;
}

}  // namespace

FillMarks FindFillMarks(const Tokenizer& tokenizer) {
  FillMarks marks;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    Note(token, tokenizer.TokenName(token), &marks);
  }
  return marks;
}

FillMarks FindFillMarks(std::span<const std::string_view> names) {
  FillMarks marks;
  for (std::size_t i = 0; i < names.size(); ++i) Note(static_cast<Token>(i), names[i], &marks);
  return marks;
}

}  // namespace foretoken
