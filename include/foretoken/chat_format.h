#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

/// How a model writes what it thinks before it answers.
struct ReasoningForm {
  std::string_view open;   ///< "<think>"; empty: it does not think apart.
  std::string_view close;  ///< "</think>"
};

/// How a call's name and arguments stand between its marks.
enum class CallBody {
  kJson,     ///< As JSON: {"name": N, "arguments": A}, a list of such objects, or N and then A.
  kTags,     ///< N, and each argument between marks of its own; strings have no quotes.
  kHarmony,  ///< Messages to a function, on channels, as gpt-oss writes them.
  kGemma,    ///< N{key:value}, strings between marks.
};

/// How a model writes calls of functions.
struct CallForm {
  std::string_view name;  ///< As options name it.
  CallBody body = CallBody::kJson;

  // How they are recognised.
  std::string_view open;        ///< With which each call begins, or all together.
  std::string_view close = {};  ///< With which that ends; empty: with the JSON.
  bool opens_by_brace = false;  ///< An answer that begins with "{" is a call as well.
  std::array<std::string_view, 2> passed_over = {};  ///< Marks that say nothing themselves.
  std::string_view name_key = "name";
  std::string_view arguments_key = "arguments";
  bool bare_name = false;  ///< Whether the name stands before the arguments, not beside them.
  /// The text that may stand before a bare name; empty: none.
  std::string_view before_bare_name = {};
  // The marks of kTags around an argument's name and around its value, which has lines of its own
  // where no mark opens it, or those of kGemma around strings.
  std::string_view key_open = {};
  std::string_view key_close = {};
  std::string_view value_open = {};
  std::string_view value_close = {};

  // How they are written where a grammar asks for them.
  std::string_view first = {};  ///< Before the first call.
  std::string_view before_name;
  std::string_view before_arguments;
  std::string_view after_arguments = {};
  std::string_view joint = {};  ///< Between two calls.
  std::string_view last = {};   ///< After the last.
  bool several = true;          ///< Whether an answer may have more than one.
};

/// How a model writes its answers in chats.
struct ChatFormat {
  ReasoningForm reasoning;
  const CallForm* calls = nullptr;  ///< Null: it calls no functions, or nobody knows how.
  std::string_view said_open = {};  ///< What stands before what is said.

  /// Whether a model thinks at once after a prompt that ends with `tail`.
  bool OpensReasoning(std::string_view tail) const;
  /// Whether this special token of a vocabulary is one of the format's marks: it is then shown as
  /// text, as others are not.
  bool IsMark(std::string_view token) const;
};

/// The format of the model that has this chat template; with `calls` given, calls of that name.
ChatFormat FindChatFormat(std::string_view chat_template, const CallForm* calls = nullptr);
/// The same with calls of another form.
ChatFormat WithCalls(ChatFormat format, const CallForm& calls);
/// Null where there is none of this name.
const CallForm* FindCallForm(std::string_view name);
/// Their names, in order.
std::vector<std::string_view> CallFormNames();

/// A function that a model may call.
struct ChatTool {
  std::string name;
  std::string parameters;  ///< A JSON Schema of its arguments, an object; empty: any.
  bool strict = false;     ///< Arguments that do not match are never written.
};

/// A part of an answer, or of one as it comes.
struct ChatPart {
  enum class Kind {
    kContent,
    kReasoning,
    kCall,       ///< A call begins: `text` is the function's name.
    kArguments,  ///< More of the latest call's arguments, a JSON text.
  };
  Kind kind = Kind::kContent;
  std::string text;
  friend bool operator==(const ChatPart&, const ChatPart&) = default;
};

/// What a reader looks for in a text.
struct ChatReading {
  ChatFormat format;
  bool in_reasoning = false;         ///< The prompt began it.
  std::vector<ChatTool> tools = {};  ///< Functions that may be called.
};

/// Takes an answer apart as it comes. What it makes of a text does not depend on the pieces in
/// which that comes, but for where parts of one kind are divided.
class ChatReader {
 public:
  explicit ChatReader(const ChatReading& reading);
  ~ChatReader();
  ChatReader(ChatReader&&) noexcept;
  ChatReader& operator=(ChatReader&&) noexcept;

  /// Adds what is now certain to `parts`; neighbours are of different kinds, but for calls.
  void Push(std::string_view text, std::vector<ChatPart>* parts);
  /// The same with what was held back: the text ends here.
  void Finish(std::vector<ChatPart>* parts);

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

/// How much a model may think before it answers.
struct ReasoningBudget {
  static constexpr int kMaxTokens = 1 << 24;

  int tokens = -1;      ///< Tokens of all thoughts together; 0: none; -1: as many as it likes.
  std::string message;  ///< With which they end where these are spent; the closing mark follows.
};

/// What an answer may be.
struct AnswerRules {
  ChatReading reading;
  bool must_call = false;       ///< One of the tools, and nothing is said.
  bool one_call = false;        ///< One at most.
  std::string content_grammar;  ///< The grammar of what is said; empty: anything may be said.
  /// How much the model may think. Only formats that have marks for thoughts keep to it; other
  /// thoughts could not be counted.
  ReasoningBudget budget = {};
};

/// A grammar (ParseGrammar's notation) of such answers; empty where anything goes: where nothing
/// must be called, no function is strict, thoughts have no budget, and nothing is asked of what is
/// said. Refuses what it cannot hold an answer to, in one sentence. With tools the format has
/// calls.
Result<std::string> AnswerGrammar(const AnswerRules& rules);

}  // namespace foretoken
