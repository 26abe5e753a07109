#include "text/jinja/syntax/lexeme_reader.h"

#include <fmt/format.h>

#include "base/text/utf8.h"

namespace foretoken::jinja {
namespace {

using Kind = Lexeme::Kind;

constexpr int kDeepestSyntax = 200;

/// As errors call a word.
std::string Described(const Lexeme& word) {
  switch (word.kind) {
    case Kind::kData:
      return "text";
    case Kind::kPrintBegin:
      return "'{{'";
    case Kind::kPrintEnd:
      return "'}}'";
    case Kind::kBlockBegin:
      return "'{%'";
    case Kind::kBlockEnd:
      return "'%}'";
    case Kind::kEnd:
      return "the end of the template";
    case Kind::kString:
      return "a string";
    default:
      return fmt::format("'{}'", Shortened(word.text, 40));
  }
}

}  // namespace

Lexeme LexemeReader::Take() {
  Lexeme word = Peek();
  if (at_ + 1 < lexemes_.size()) ++at_;
  return word;
}

bool LexemeReader::TakeName(std::string_view name) {
  if (!Peek().IsName(name)) return false;
  Take();
  return true;
}

bool LexemeReader::TakeOperator(std::string_view name) {
  if (!Peek().IsOperator(name)) return false;
  Take();
  return true;
}

void LexemeReader::ExpectOperator(std::string_view name) {
  if (!TakeOperator(name)) FailAtWord(fmt::format("'{}'", name));
}

void LexemeReader::Expect(Kind kind, std::string_view what) {
  if (Peek().kind != kind) return FailAtWord(what);
  Take();
}

std::string LexemeReader::ExpectName() {
  if (Peek().kind != Kind::kName) {
    FailAtWord("a name");
    return {};
  }
  return Take().text;
}

void LexemeReader::Fail(const std::string& what) {
  if (!status_.ok()) return;
  status_ = Invalid("line {} of the template: {}", Peek().line, what);
  at_ = lexemes_.size() - 1;
}

void LexemeReader::FailAtWord(std::string_view wanted) {
  Fail("{} stands where {} is expected", Described(Peek()), wanted);
}

bool LexemeReader::Enter() {
  ++depth_;
  if (depth_ > kDeepestSyntax) Fail("more than {} levels within each other", kDeepestSyntax);
  return ok();
}

}  // namespace foretoken::jinja
