#pragma once

#include <utility>
#include <vector>

#include "text/jinja/syntax/lexeme_reader.h"
#include "text/jinja/syntax/syntax.h"

namespace foretoken::jinja {

/// Parses expressions as jinja2 does: its order of operators is not Python's in all.
class ExpressionParser {
 public:
  ExpressionParser(LexemeReader* words, SyntaxTree* tree) : words_(words), tree_(tree) {}

  /// One expression.
  const Expression* Parse();
  /// One, or several with commas between them: a tuple.
  const Expression* ParseTuple(bool with_condition = true);
  /// The filter behind a | or `filter`, and those that follow, of what `input` is.
  const Expression* ParseFilters(const Expression* input, bool first_without_pipe);
  /// Names, or several in brackets or without.
  Target ParseTarget(bool with_attributes);
  std::vector<Parameter> ParseParameters();

  /// Tells `code` which of the names that macros have for their caller and what else they were
  /// given are used until LeaveMacro.
  void EnterMacro(MacroCode* code) { macros_.push_back(code); }
  void LeaveMacro() { macros_.pop_back(); }

 private:
  const Expression* ParseOr();
  const Expression* ParseAnd();
  const Expression* ParseNot();
  const Expression* ParseComparison();
  const Expression* ParseSum();
  const Expression* ParseConcat();
  const Expression* ParseProduct();
  const Expression* ParsePower();
  const Expression* ParseUnary(bool with_filters);
  const Expression* ParsePrimary();
  const Expression* ParseWord();
  const Expression* ParseStrings();
  const Expression* ParseNumber();
  const Expression* ParseBrackets();
  const Expression* ParseList();
  const Expression* ParseDict();
  const Expression* ParsePostfix(const Expression* object);
  const Expression* ParseFiltersAndTests(const Expression* value);
  const Expression* ParseAttribute(const Expression* object);
  const Expression* ParseSubscript(const Expression* object);
  const Expression* ParseTest(const Expression* value);
  CallArguments ParseArguments();
  void ParseArgument(CallArguments* arguments);
  bool TakeComparison(Comparison* comparison);
  Target ParseOneTarget(bool with_attributes);

  template <typename Form>
  const Expression* Add(int line, Form form) {
    return &tree_->expressions.emplace_back(Expression{line, std::move(form)});
  }
  int line() const { return words_->Peek().line; }
  const Expression* Nothing() { return Add(line(), ConstantExpression{}); }

  LexemeReader* words_;
  SyntaxTree* tree_;
  std::vector<MacroCode*> macros_;
};

}  // namespace foretoken::jinja
