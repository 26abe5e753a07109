// Grammars of whole answers in chats: thoughts, what is said, calls of functions.

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "foretoken/chat_format.h"
#include "text/grammar/automaton/code_points.h"
#include "text/grammar/chat/arguments.h"
#include "text/grammar/chat/free_text.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_text.h"

namespace foretoken {
namespace {

constexpr int kMaxSpace = 2;  // Line feeds between two parts.

Expression Space() { return RepeatOf(LiteralOf("\n"), 0, kMaxSpace); }

// Whether nothing is asked of an answer, but perhaps of the length of its thoughts.
bool IsFree(const AnswerRules& rules) {
  const bool strict = std::ranges::any_of(rules.reading.tools, &ChatTool::strict);
  return rules.content_grammar.empty() && !rules.must_call && !strict;
}

bool HasBudget(const AnswerRules& rules) {
  return rules.budget.tokens >= 0 && !rules.reading.format.reasoning.close.empty();
}

class AnswerWriter {
 public:
  explicit AnswerWriter(const AnswerRules& rules)
      : rules_(rules), format_(rules.reading.format), grammar_{.rules = {{"root", {}}}} {}

  Result<std::string> Write() {
    Expression answer;
    if (IsFree(rules_)) {
      // Where only the thoughts' length is asked for, nothing more is.
      grammar_.rules[0].body = RepeatOf(ClassOf(ComplementRanges({})), 0, Expression::kUnbounded);
      return WithBudget();
    }
    if (rules_.must_call) {
      FT_ASSIGN_OR_RETURN(answer, Calls());
    } else if (rules_.content_grammar.empty()) {
      FT_ASSIGN_OR_RETURN(answer, TextWithCalls());
    } else {
      FT_ASSIGN_OR_RETURN(Expression said, Include(rules_.content_grammar, &grammar_));
      answer = SequenceOf({LiteralOf(std::string(format_.said_open)), std::move(said)});
      if (!rules_.reading.tools.empty()) {
        FT_ASSIGN_OR_RETURN(Expression calls, Calls());
        answer = ChoiceOf({std::move(answer), std::move(calls)});
      }
    }
    grammar_.rules[0].body = BehindThoughts(std::move(answer));
    return WithBudget();
  }

 private:
  std::string WithBudget() {
    if (HasBudget(rules_)) {
      grammar_.reasoning = {.tokens = rules_.budget.tokens,
                            .begun = rules_.reading.in_reasoning,
                            .open = std::string(format_.reasoning.open),
                            .close = std::string(format_.reasoning.close),
                            .message = rules_.budget.message};
    }
    return GrammarText(grammar_);
  }

  Expression BehindThoughts(Expression answer) {
    const ReasoningForm& reasoning = format_.reasoning;
    if (reasoning.close.empty()) return answer;
    Expression thoughts = TextUpTo(reasoning.close, &grammar_);
    if (rules_.reading.in_reasoning) {
      return SequenceOf({std::move(thoughts), Space(), std::move(answer)});
    }
    thoughts = SequenceOf({LiteralOf(std::string(reasoning.open)), std::move(thoughts), Space()});
    return SequenceOf({RepeatOf(std::move(thoughts), 0, 1), std::move(answer)});
  }

  // One call of any of the functions.
  Result<Expression> Call() {
    const CallForm& form = *format_.calls;
    std::vector<Expression> calls;
    for (const ChatTool& tool : rules_.reading.tools) {
      FT_ASSIGN_OR_RETURN(Expression arguments, Arguments(form, tool, &grammar_));
      calls.push_back(SequenceOf(
          {LiteralOf(fmt::format("{}{}{}", form.before_name, tool.name, form.before_arguments)),
           std::move(arguments), LiteralOf(std::string(form.after_arguments))}));
    }
    grammar_.rules.push_back({"call", ChoiceOf(std::move(calls))});
    return RuleOf(Int(grammar_.rules.size()) - 1);
  }

  // One call or several, with what stands around them.
  Result<Expression> Calls() {
    const CallForm& form = *format_.calls;
    FT_ASSIGN_OR_RETURN(Expression call, Call());
    Expression more = SequenceOf({LiteralOf(std::string(form.joint)), call});
    const int most = form.several && !rules_.one_call ? Expression::kUnbounded : 0;
    return SequenceOf({LiteralOf(std::string(form.first)), std::move(call),
                       RepeatOf(std::move(more), 0, most), LiteralOf(std::string(form.last))});
  }

  // Anything; what begins as a call goes on as one, and only calls follow it.
  Result<Expression> TextWithCalls() {
    const CallForm& form = *format_.calls;
    FT_ASSIGN_OR_RETURN(Expression calls, Calls());
    // Also where only calls as a whole begin with another mark.
    const std::string_view beginning = form.first.empty() ? form.before_name : form.first;
    const auto common = std::ranges::mismatch(form.open, beginning).in1 - form.open.begin();
    const std::string_view mark = common == 0 ? form.open : form.open.substr(0, common);
    const std::string_view not_first = form.opens_by_brace ? "{ \n\t\r" : "";
    Expression text = TextWithout(mark, not_first, &grammar_);
    // A brace begins a call only where nothing is said before it.
    if (form.opens_by_brace) {
      return SequenceOf({Space(), ChoiceOf({std::move(text), std::move(calls)})});
    }
    return SequenceOf({std::move(text), RepeatOf(std::move(calls), 0, 1)});
  }

  const AnswerRules& rules_;
  const ChatFormat& format_;
  Grammar grammar_;
};

}  // namespace

Result<std::string> AnswerGrammar(const AnswerRules& rules) {
  if (IsFree(rules) && !HasBudget(rules)) return std::string();
  return AnswerWriter(rules).Write();
}

}  // namespace foretoken
