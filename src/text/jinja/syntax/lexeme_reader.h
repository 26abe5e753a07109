#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/syntax/lexer.h"

namespace foretoken::jinja {

/// The words of a template one after the other. After the first error only its end is left.
class LexemeReader {
 public:
  explicit LexemeReader(std::vector<Lexeme> lexemes) : lexemes_(std::move(lexemes)) {}

  const Lexeme& Peek(std::size_t ahead = 0) const {
    return lexemes_[std::min(at_ + ahead, lexemes_.size() - 1)];
  }
  Lexeme Take();
  /// Takes the next word if it is this one.
  bool TakeName(std::string_view name);
  bool TakeOperator(std::string_view name);
  /// Takes what must be there.
  void ExpectOperator(std::string_view name);
  void Expect(Lexeme::Kind kind, std::string_view what);
  std::string ExpectName();

  bool AtEnd() const { return Peek().kind == Lexeme::Kind::kEnd; }
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void Fail(const std::string& what);
  template <typename Arg, typename... Args>
  void Fail(fmt::format_string<Arg, Args...> format, Arg&& arg, Args&&... args) {
    Fail(fmt::format(format, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }
  /// Fails with the word that is next.
  void FailAtWord(std::string_view wanted);

  /// Takes one level of nesting, which Leave gives back; false where there are too many.
  bool Enter();
  void Leave() { --depth_; }

 private:
  std::vector<Lexeme> lexemes_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Status status_;
};

}  // namespace foretoken::jinja
