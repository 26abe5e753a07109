#include "text/jinja/syntax/parser.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "text/jinja/syntax/expression_parser.h"

namespace foretoken::jinja {
namespace {

using Kind = Lexeme::Kind;
using Ends = std::initializer_list<std::string_view>;

class Parser {
 public:
  explicit Parser(std::vector<Lexeme> lexemes)
      : words_(std::move(lexemes)),
        tree_(std::make_unique<SyntaxTree>()),
        expressions_(&words_, tree_.get()) {}

  Result<std::unique_ptr<const SyntaxTree>> Run() {
    tree_->body = ParseBody({});
    if (!words_.ok()) return words_.status().error();
    return std::unique_ptr<const SyntaxTree>(std::move(tree_));
  }

 private:
  template <typename Form>
  const Statement* Add(int line, Form form) {
    return &tree_->statements.emplace_back(Statement{line, std::move(form)});
  }

  /// Text and tags up to a tag with one of these names, which is next then, or to the end of the
  /// template where there are none.
  Body ParseBody(Ends ends) {
    Body body;
    while (words_.ok() && !words_.AtEnd()) {
      const int line = words_.Peek().line;
      if (words_.Peek().kind == Kind::kData) {
        const Text text(words_.Take().text);
        body.push_back(Add(line, TextStatement{Value(
                                     jinja::String(std::make_shared<StoredText>(text, nullptr)))}));
      } else if (words_.Peek().kind == Kind::kPrintBegin) {
        words_.Take();
        body.push_back(Add(line, PrintStatement{expressions_.ParseTuple()}));
        words_.Expect(Kind::kPrintEnd, "'}}'");
      } else {
        words_.Take();  // Only a block can begin here.
        const auto ends_body = [this](std::string_view name) { return words_.Peek().IsName(name); };
        if (std::ranges::any_of(ends, ends_body)) return body;
        if (const Statement* statement = ParseStatement(line)) body.push_back(statement);
        words_.Expect(Kind::kBlockEnd, "'%}'");
      }
    }
    if (ends.size() > 0) words_.Fail("'{}' is missing", *(ends.end() - 1));
    return body;
  }

  /// The body of the tag that ends here, and the name of the tag that ends it.
  Body ParseInner(Ends ends, std::string* end) {
    words_.Expect(Kind::kBlockEnd, "'%}'");
    Body body = ParseBody(ends);
    *end = words_.ok() ? words_.Take().text : "";
    return body;
  }
  Body ParseInner(std::string_view end) {
    std::string found;
    return ParseInner({end}, &found);
  }

  const Statement* ParseStatement(int line) {
    const Statement* statement = nullptr;
    if (words_.Enter()) statement = ParseNamed(words_.ExpectName(), line);
    words_.Leave();
    return statement;
  }

  const Statement* ParseNamed(const std::string& name, int line) {
    if (name == "if") return ParseIf(line);
    if (name == "for") return ParseFor(line);
    if (name == "set") return ParseSet(line);
    if (name == "macro") return ParseMacro(line);
    if (name == "call") return ParseCall(line);
    if (name == "filter") return ParseFilter(line);
    if (name == "with") return ParseWith(line);
    if (name == "print") return Add(line, PrintStatement{expressions_.ParseTuple()});
    if (name == "break" || name == "continue") return ParseJump(line, name == "break");
    // What an assistant said, which those mark who train on it.
    if (name == "generation") return Add(line, WithStatement{{}, ParseInner("endgeneration")});
    for (const char* other : {"include", "import", "from", "extends", "block"}) {
      if (name == other) {
        words_.Fail("'{}' is for templates of several files; a chat template is one", name);
      }
    }
    words_.Fail("there is no tag '{}' here", name);
    return nullptr;
  }

  const Statement* ParseIf(int line) {
    IfStatement statement;
    std::string end = "elif";
    while (end == "elif") {
      const Expression* test = expressions_.ParseTuple(/*with_condition=*/false);
      Body body = ParseInner({"elif", "else", "endif"}, &end);
      statement.branches.push_back({test, std::move(body)});
    }
    if (end == "else") statement.otherwise = ParseInner("endif");
    return Add(line, std::move(statement));
  }

  const Statement* ParseFor(int line) {
    ForStatement statement;
    statement.target = expressions_.ParseTarget(/*with_attributes=*/false);
    if (!words_.TakeName("in")) words_.FailAtWord("'in'");
    statement.iterable = expressions_.ParseTuple(/*with_condition=*/false);
    statement.filter = words_.TakeName("if") ? expressions_.Parse() : nullptr;
    statement.is_recursive = words_.TakeName("recursive");
    statement.loop = tree_->NameOf("loop");
    std::string end;
    ++loops_;
    statement.body = ParseInner({"else", "endfor"}, &end);
    --loops_;
    if (end == "else") statement.otherwise = ParseInner("endfor");
    return Add(line, std::move(statement));
  }

  const Statement* ParseJump(int line, bool is_break) {
    if (loops_ == 0) words_.Fail("'break' and 'continue' stand in loops only");
    return Add(line, JumpStatement{is_break});
  }

  const Statement* ParseSet(int line) {
    Target target = expressions_.ParseTarget(/*with_attributes=*/true);
    if (words_.TakeOperator("=")) {
      return Add(line, SetStatement{std::move(target), expressions_.ParseTuple()});
    }
    const Expression* filter =
        words_.Peek().IsOperator("|") ? expressions_.ParseFilters(nullptr, false) : nullptr;
    Body body = ParseInner("endset");
    return Add(line, SetBlockStatement{std::move(target), filter, std::move(body)});
  }

  /// The body of a macro, whose `code` learns what it uses.
  Body ParseMacroBody(MacroCode* code, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    expressions_.EnterMacro(code);
    Body body = ParseInner(end);
    expressions_.LeaveMacro();
    loops_ = loops;
    return body;
  }

  const Statement* ParseMacro(int line) {
    MacroStatement statement;
    statement.code.name = words_.ExpectName();
    statement.name = tree_->NameOf(statement.code.name);
    statement.code.parameters = expressions_.ParseParameters();
    statement.code.body = ParseMacroBody(&statement.code, "endmacro");
    return Add(line, std::move(statement));
  }

  const Statement* ParseCall(int line) {
    CallBlockStatement statement;
    statement.code.name = "caller";
    if (words_.Peek().IsOperator("(")) statement.code.parameters = expressions_.ParseParameters();
    statement.call = expressions_.Parse();
    if (!std::holds_alternative<CallExpression>(statement.call->form)) {
      words_.Fail("a call block calls a macro, as in {% call name() %}");
    }
    statement.code.body = ParseMacroBody(&statement.code, "endcall");
    return Add(line, std::move(statement));
  }

  const Statement* ParseFilter(int line) {
    const Expression* filter = expressions_.ParseFilters(nullptr, true);
    return Add(line, FilterBlockStatement{filter, ParseInner("endfilter")});
  }

  const Statement* ParseWith(int line) {
    WithStatement statement;
    while (words_.ok() && words_.Peek().kind != Kind::kBlockEnd) {
      if (!statement.values.empty()) words_.ExpectOperator(",");
      Target target = expressions_.ParseTarget(/*with_attributes=*/false);
      words_.ExpectOperator("=");
      statement.values.emplace_back(std::move(target), expressions_.Parse());
    }
    statement.body = ParseInner("endwith");
    return Add(line, std::move(statement));
  }

  LexemeReader words_;
  std::unique_ptr<SyntaxTree> tree_;
  ExpressionParser expressions_;
  int loops_ = 0;  // Around what is parsed, within its macro.
};

}  // namespace

Result<std::unique_ptr<const SyntaxTree>> ParseTemplate(std::string_view source) {
  FT_ASSIGN_OR_RETURN(std::vector<Lexeme> lexemes, ReadLexemes(source));
  return Parser(std::move(lexemes)).Run();
}

}  // namespace foretoken::jinja
