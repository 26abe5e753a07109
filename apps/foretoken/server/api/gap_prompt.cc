#include "apps/foretoken/server/api/gap_prompt.h"

#include <iterator>
#include <string_view>
#include <utility>

#include "base/numbers/integers.h"

namespace foretoken::server {
namespace {

// What models were trained to read before a file that has no name, and before files that no mark
// divides; llama.cpp writes the same.
constexpr std::string_view kRepository = "myproject\n";
constexpr std::string_view kThisFile = "filename\n";
constexpr std::string_view kSnippet = "\n\n--- snippet ---\n\n";

// Puts tokens together.
class Joined {
 public:
  explicit Joined(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  Joined& Mark(Token mark) {
    if (mark >= 0) tokens.push_back(mark);
    return *this;
  }
  Joined& Text(std::string_view text) {
    const std::vector<Token> more = tokenizer_.Encode(text, /*add_bos=*/false,
                                                      /*parse_special=*/false);
    tokens.insert(tokens.end(), more.begin(), more.end());
    return *this;
  }

  std::vector<Token> tokens;

 private:
  const Tokenizer& tokenizer_;
};

std::vector<Token> FileTokens(const ApiGap::File& file, const Tokenizer& tokenizer,
                              const FillMarks& marks) {
  Joined joined(tokenizer);
  if (marks.file < 0) return std::move(joined.Text(kSnippet).Text(file.text).tokens);
  return std::move(joined.Mark(marks.file).Text(file.name + "\n").Text(file.text).tokens);
}

}  // namespace

std::vector<Token> GapPrompt(const ApiGap& gap, const Tokenizer& tokenizer, const FillMarks& marks,
                             int most) {
  Joined own(tokenizer);
  if (!gap.files.empty() && marks.file >= 0) own.Mark(marks.file).Text(kThisFile);
  own.Mark(marks.prefix).Text(gap.before);
  own.Mark(marks.suffix).Text(gap.behind).Mark(marks.middle);
  Joined begin(tokenizer);
  begin.tokens = tokenizer.Encode("", /*add_bos=*/true, /*parse_special=*/false);
  if (!gap.files.empty() && marks.repository >= 0) begin.Mark(marks.repository).Text(kRepository);
  std::vector<std::vector<Token>> files;  // The last one first.
  std::size_t length = begin.tokens.size() + own.tokens.size();
  for (auto file = gap.files.rbegin(); file != gap.files.rend(); ++file) {
    std::vector<Token> tokens = FileTokens(*file, tokenizer, marks);
    if (length + tokens.size() > Size(most)) continue;
    length += tokens.size();
    files.push_back(std::move(tokens));
  }
  std::vector<Token> prompt = std::move(begin.tokens);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    prompt.insert(prompt.end(), file->begin(), file->end());
  }
  prompt.insert(prompt.end(), own.tokens.begin(), own.tokens.end());
  return prompt;
}

std::vector<Token> GapEnds(const FillMarks& marks) {
  std::vector<Token> ends;
  for (const Token mark : {marks.pad, marks.repository, marks.file}) {
    if (mark >= 0) ends.push_back(mark);
  }
  return ends;
}

}  // namespace foretoken::server
