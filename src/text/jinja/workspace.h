#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <ctime>
#include <deque>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/objects.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace foretoken::jinja {

/// What one rendering may take, whatever its template and its inputs are.
struct Limits {
  std::size_t steps = 20'000'000;               ///< Nodes evaluated, or some dozen bytes handled.
  std::size_t memory = std::size_t{256} << 20;  ///< Bytes of the values that are alive at once.
  std::size_t output = std::size_t{32} << 20;   ///< Bytes of the text.
  int depth = 800;                              ///< Evaluations within each other.
};

/// What one rendering works with: the objects that it makes, what it has left of its limits, and
/// what went wrong first. After that every call does as little as it can; whoever loops asks ok()
/// or heeds what Step, Spend and Append return.
class Workspace {
 public:
  /// `now`, which may be null, is the time that the template is told.
  Workspace(const Limits& limits, const std::tm* now) : limits_(limits), now_(now) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  /// Keeps the first error with the line. Returns what a failed evaluation gives.
  Undefined Fail(std::string message);
  template <typename Arg, typename... Args>
  Undefined Fail(fmt::format_string<Arg, Args...> format, Arg&& arg, Args&&... args) {
    return Fail(fmt::format(format, std::forward<Arg>(arg), std::forward<Args>(args)...));
  }

  /// The line of the template that errors name.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }
  const Limits& limits() const { return limits_; }
  const std::tm* now() const { return now_; }

  /// Takes work off the steps; false where they are used up, or something failed before.
  bool Step(std::size_t count = 1);
  /// Work over so many bytes.
  bool StepOver(std::size_t bytes) { return Step(1 + bytes / 32); }
  /// Takes bytes off the memory, likewise.
  bool Spend(std::size_t bytes);
  void Refund(std::size_t bytes) { used_ -= bytes; }
  /// What a text takes, alone and as a string.
  static std::size_t Footprint(const Text& text) {
    return kObject + text.size() + text.inputs().size() * sizeof(Span);
  }

  /// Takes one evaluation within another off the depth; false where it is used up, or something
  /// failed before. Leave gives it back in either case.
  bool Enter();
  void Leave() { --depth_; }

  Value NewString(std::string_view bytes, bool from_input = false);
  List* NewList(List::Kind kind = List::Kind::kList);
  bool Push(List* list, Value item);
  Dict* NewDict();
  /// Fails for a key that is none.
  bool Set(Dict* dict, Value key, Value value);
  Namespace* NewNamespace();
  Macro* NewMacro(const MacroCode* code, Scope* scope);
  Loop* NewLoop();
  Method* NewMethod(Method method);

  /// A scope within `parent`, to be given back with EndScope.
  Scope* BeginScope(Scope* parent);
  /// The scope's variables go, unless a macro remembers it.
  void EndScope(Scope* scope);

 private:
  friend class TextBuilder;
  static constexpr std::size_t kObject = 96;

  const Limits limits_;
  const std::tm* now_;
  Status status_;
  int line_ = 1;
  int depth_ = 0;
  std::size_t steps_ = 0;
  std::size_t used_ = 0;

  // Values may point at each other in circles: they all live as long as the rendering.
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<Macro> macros_;
  std::deque<Loop> loops_;
  std::deque<Method> methods_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
};

/// Makes a string piece by piece, within the limits of a workspace.
class TextBuilder {
 public:
  explicit TextBuilder(Workspace* workspace);
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;
  ~TextBuilder();

  /// False: the limits are reached, or something failed before; nothing was appended.
  bool Append(std::string_view bytes, bool from_input = false);
  bool Append(const Text& text) { return Append(text, 0, text.size()); }
  bool Append(const Text& text, std::size_t begin, std::size_t end);

  Workspace* workspace() const { return workspace_; }
  const Text& text() const { return text_; }
  /// The string. The builder is empty afterwards.
  Value Finish(bool is_safe = false);
  /// The text itself, which nobody counts any longer.
  Text Release();

 private:
  Workspace* workspace_;
  Text text_;
  std::size_t spent_ = 0;
};

}  // namespace foretoken::jinja
