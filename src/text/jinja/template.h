#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"
#include "text/jinja/text.h"
#include "text/jinja/workspace.h"

namespace foretoken::jinja {

struct SyntaxTree;

/// What a template may know: its variables and the time. It reaches nothing else.
struct Inputs {
  /// An object of variables that somebody sent: their strings are marked as input in what comes
  /// out.
  Json data = Json::object();
  /// Variables that are the model's own, such as the spelling of its special tokens; `data` goes
  /// before them.
  std::map<std::string, std::string> own = {};
  /// What strftime_now() reads; null: there is no such function. Outlives the call.
  const std::tm* now = nullptr;
};

/// A Jinja template, parsed: what jinja2 makes of one with the settings of transformers
/// (trim_blocks, lstrip_blocks, loop controls, tojson, raise_exception, strftime_now). Immutable
/// and thread-safe.
class Template {
 public:
  /// An error is one sentence with the line.
  static Result<Template> Parse(std::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// The template's text for these inputs. An error is one sentence with the line; so is it when a
  /// limit is reached.
  Result<Text> Render(const Inputs& inputs, const Limits& limits = {}) const;

 private:
  explicit Template(std::unique_ptr<const SyntaxTree> tree);

  std::unique_ptr<const SyntaxTree> tree_;
};

}  // namespace foretoken::jinja
