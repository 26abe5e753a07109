#include "text/jinja/builtins/builtins.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "base/text/utf8.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/letters.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

Value MakeRange(Workspace* workspace, Arguments* arguments) {
  constexpr std::int64_t kMost = 100'000;
  Parameters parameters(workspace, "range", arguments);
  const bool bounds = arguments->positional.size() > 1;
  const std::int64_t start = bounds ? parameters.Integer("start", 0) : 0;
  const Value end = parameters.Required("stop");
  const std::int64_t step = parameters.Integer("step", 1);
  if (!parameters.Close()) return {};
  if (!end.Integer().has_value() || step == 0) {
    return workspace->Fail("range takes integers, and a step that is not 0");
  }
  List* list = workspace->NewList(List::Kind::kRange);
  const std::int64_t stop = *end.Integer();
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (std::ssize(list->items) == kMost) {
      return workspace->Fail("a range has at most {} numbers", kMost);
    }
    if (!workspace->Push(list, i)) return {};
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list;
}

Value MakeDict(Workspace* workspace, Arguments* arguments) {
  Dict* dict = workspace->NewDict();
  if (arguments->positional.size() > 1) return workspace->Fail("dict takes one dict or list");
  if (!arguments->positional.empty()) {
    const Value& given = arguments->positional[0];
    if (const Dict* other = given.AsDict()) {
      for (const auto& [key, value] : other->entries) workspace->Set(dict, key, value);
    } else {
      std::vector<Value> pairs;
      if (!Iterate(workspace, given, &pairs)) return {};
      for (const Value& pair : pairs) {
        std::vector<Value> both;
        if (!Iterate(workspace, pair, &both)) return {};
        if (both.size() != 2) return workspace->Fail("dict takes pairs of a key and a value");
        workspace->Set(dict, both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments->named) {
    workspace->Set(dict, workspace->NewString(name), value);
  }
  return dict;
}

Value MakeNamespace(Workspace* workspace, Arguments* arguments) {
  Namespace* names = workspace->NewNamespace();
  Arguments given = std::move(*arguments);
  if (given.positional.size() > 1) return workspace->Fail("namespace takes one dict");
  if (!given.positional.empty()) {
    const Dict* dict = given.positional[0].AsDict();
    if (dict == nullptr) return workspace->Fail("namespace takes a dict");
    for (const auto& [key, value] : dict->entries) {
      const Text* name = key.AsText();
      if (name == nullptr) return workspace->Fail("the names of a namespace are strings");
      if (!workspace->Spend(2 * sizeof(Value) + name->size())) return {};
      names->Set(name->bytes(), value);
    }
  }
  for (const auto& [name, value] : given.named) names->Set(name, value);
  return names;
}

Value RaiseException(Workspace* workspace, Arguments* arguments) {
  Parameters parameters(workspace, "raise_exception", arguments);
  const Value message = Str(workspace, parameters.Required("message"));
  if (!parameters.Close()) return {};
  constexpr std::size_t kMost = 500;
  return workspace->Fail("the template refuses this chat: {}",
                         Shortened(message.AsText()->bytes(), kMost));
}

/// strftime of Python, which leaves out the zone of a time that has none, and knows microseconds.
Value StrftimeNow(Workspace* workspace, Arguments* arguments) {
  Parameters parameters(workspace, "strftime_now", arguments);
  const Value format = parameters.RequiredText("format");
  if (!parameters.Close()) return {};
  const std::string& bytes = format.AsText()->bytes();
  TextBuilder builder(workspace);
  for (std::size_t at = 0; at < bytes.size() && workspace->ok(); ++at) {
    const std::size_t percent = std::min(bytes.find('%', at), bytes.size());
    if (percent + 1 >= bytes.size()) {
      builder.Append(*format.AsText(), at, bytes.size());
      break;
    }
    builder.Append(*format.AsText(), at, percent);
    at = percent;
    std::string directive = {'%', bytes[++at]};
    const bool flagged = std::string_view("-_0^#").find(bytes[at]) != std::string_view::npos;
    if (flagged && at + 1 < bytes.size()) directive += bytes[++at];
    const char kind = directive.back();
    if (kind == 'f') builder.Append("000000");
    if (kind == 'f' || kind == 'z' || kind == 'Z') continue;
    if (std::string_view("aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%").find(kind) ==
        std::string_view::npos) {
      std::size_t length = 0;
      CodeAt(bytes, at, &length);
      return workspace->Fail("strftime_now does not know '{}{}'",
                             directive.substr(0, directive.size() - 1), bytes.substr(at, length));
    }
    std::array<char, 128> text;
    const std::size_t length =
        std::strftime(text.data(), text.size(), directive.c_str(), workspace->now());
    builder.Append(std::string_view(text.data(), length));
  }
  return builder.Finish();
}

constexpr Function kStrftimeNow = {"strftime_now", StrftimeNow};
constexpr std::array kFunctions = {
    Function{"range", MakeRange},
    Function{"dict", MakeDict},
    Function{"namespace", MakeNamespace},
    Function{"raise_exception", RaiseException},
};

}  // namespace

const Function* FindFunction(const Workspace& workspace, std::string_view name) {
  if (name == kStrftimeNow.name) return workspace.now() == nullptr ? nullptr : &kStrftimeNow;
  const auto found = std::ranges::find(kFunctions, name, &Function::name);
  return found == kFunctions.end() ? nullptr : &*found;
}

}  // namespace foretoken::jinja
