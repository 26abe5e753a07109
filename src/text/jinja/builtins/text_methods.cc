#include <algorithm>
#include <array>

#include "base/text/utf8.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/format.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/letters.h"
#include "text/jinja/operations.h"

namespace foretoken::jinja {
namespace {

template <bool kLeft, bool kRight>
Value StripMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "strip", arguments);
  const Value characters = parameters.OptionalText("chars");
  if (!parameters.Close()) return {};
  return Strip(workspace, *self.AsText(), characters, {kLeft, kRight});
}

/// The words between white space; with a limit, what is left is one piece without the white space
/// at its front (or, from the right, at its end).
std::vector<Span> Words(const Text& text, std::int64_t limit, bool from_right) {
  std::vector<Span> words;
  const std::string_view bytes = text.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    const bool space = IsSpace(CodeAt(bytes, at, &length));
    if (!space) {
      if (words.empty() || words.back().end != at) words.push_back({at, at});
      words.back().end = at + length;
    }
    at += length;
  }
  const std::int64_t count = words.size();
  if (limit < 0 || limit >= count) return words;
  if (from_right) {
    const auto rest = words.end() - limit - 1;
    rest->begin = 0;
    // White space in front of everything stays, as in Python.
    words.erase(words.begin(), rest);
  } else {
    const auto rest = words.begin() + limit;
    rest->end = bytes.size();
    words.erase(rest + 1, words.end());
  }
  return words;
}

/// The pieces between separators.
std::vector<Span> Pieces(const Text& text, const Text& separator, std::int64_t limit,
                         bool from_right) {
  std::vector<Span> pieces;
  const std::string_view bytes = text.bytes();
  const std::string_view cut = separator.bytes();
  if (from_right) {
    std::size_t end = bytes.size();
    for (; limit != 0 && end >= cut.size(); --limit) {
      const std::size_t at = bytes.rfind(cut, end - cut.size());
      if (at == std::string_view::npos) break;
      pieces.push_back({at + cut.size(), end});
      end = at;
    }
    pieces.push_back({0, end});
    std::ranges::reverse(pieces);
    return pieces;
  }
  std::size_t begin = 0;
  for (; limit != 0; --limit) {
    const std::size_t at = bytes.find(cut, begin);
    if (at == std::string_view::npos) break;
    pieces.push_back({begin, at});
    begin = at + cut.size();
  }
  pieces.push_back({begin, bytes.size()});
  return pieces;
}

Value ListOfParts(Workspace* workspace, const Text& text, const std::vector<Span>& spans) {
  List* list = workspace->NewList();
  for (const Span& span : spans) {
    if (!workspace->Push(list, Part(workspace, text, span.begin, span.end))) break;
  }
  return list;
}

template <bool kFromRight>
Value Split(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "split", arguments);
  const Value separator = parameters.OptionalText("sep");
  const std::int64_t limit = parameters.Integer("maxsplit", -1);
  const Text& text = *self.AsText();
  if (!parameters.Close() || !workspace->Spend(text.size())) return {};
  workspace->Refund(text.size());
  const Text* cut = separator.AsText();
  if (cut == nullptr) return ListOfParts(workspace, text, Words(text, limit, kFromRight));
  if (cut->empty()) return workspace->Fail("split cannot split at an empty string");
  return ListOfParts(workspace, text, Pieces(text, *cut, limit, kFromRight));
}

Value SplitLines(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "splitlines", arguments);
  const bool keep = parameters.Flag("keepends", false);
  if (!parameters.Close() || !workspace->StepOver(self.AsText()->size())) return {};
  return ListOfParts(workspace, *self.AsText(), Lines(*self.AsText(), keep));
}

template <bool kFromRight>
Value Partition(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "partition", arguments);
  const Value separator = parameters.RequiredText("sep");
  if (!parameters.Close()) return {};
  const Text& text = *self.AsText();
  const std::string& cut = separator.AsText()->bytes();
  if (cut.empty()) return workspace->Fail("partition cannot split at an empty string");
  const std::size_t at = kFromRight ? text.bytes().rfind(cut) : text.bytes().find(cut);
  const bool found = at != std::string::npos;
  const std::size_t begin = found ? at : kFromRight ? 0 : text.size();
  const std::size_t end = found ? at + cut.size() : begin;
  List* list = workspace->NewList(List::Kind::kTuple);
  workspace->Push(list, Part(workspace, text, 0, begin));
  workspace->Push(list, Part(workspace, text, begin, end));
  workspace->Push(list, Part(workspace, text, end, text.size()));
  return list;
}

/// The part of `self` that the arguments `start` and `end` leave; nothing where they leave less
/// than none, or are wrong.
std::optional<Span> Window(Workspace* workspace, const Value& self, Parameters* parameters) {
  const Text& text = *self.AsText();
  const Value start = parameters->Optional("start");
  const Value stop = parameters->Optional("end");
  if (!parameters->Close()) return std::nullopt;
  if (start.IsNone() && stop.IsNone()) return Span{0, text.size()};
  const std::int64_t characters = CharactersIn(text.bytes());
  std::size_t bytes[2] = {0, text.size()};
  std::int64_t places[2] = {0, characters};
  for (const int i : {0, 1}) {
    const Value& bound = i == 0 ? start : stop;
    if (bound.IsNone()) continue;
    if (!bound.Integer().has_value()) {
      workspace->Fail("start and end are integers");
      return std::nullopt;
    }
    const std::int64_t given = std::max(*bound.Integer(), -characters);
    places[i] = given < 0 ? given + characters : given;
    std::size_t at = 0;
    for (std::int64_t left = places[i]; left > 0 && at < text.size(); --left) {
      std::size_t length = 0;
      CodeAt(text.bytes(), at, &length);
      at += length;
    }
    bytes[i] = at;
  }
  if (places[0] > characters || places[0] > places[1]) return std::nullopt;
  return Span{bytes[0], bytes[1]};
}

template <bool kAtEnd>
Value HasAffix(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, kAtEnd ? "endswith" : "startswith", arguments);
  const Value affix = parameters.Required("prefix");
  const auto window = Window(workspace, self, &parameters);
  if (!workspace->ok()) return {};
  std::vector<Value> choices = {affix};
  const List* list = affix.AsList();
  if (list != nullptr && list->kind == List::Kind::kTuple) choices = list->items;
  for (const Value& choice : choices) {
    const Text* text = choice.AsText();
    if (text == nullptr) {
      return workspace->Fail("{} takes a string or a tuple of strings, not a {}",
                             kAtEnd ? "endswith" : "startswith", choice.TypeName());
    }
    if (!window.has_value()) continue;
    const std::string_view part =
        std::string_view(self.AsText()->bytes()).substr(window->begin, window->end - window->begin);
    if (kAtEnd ? part.ends_with(text->bytes()) : part.starts_with(text->bytes())) return true;
  }
  return false;
}

enum class Search { kFind, kFindLast, kIndex, kIndexLast, kCount };

template <Search kSearch>
Value SearchMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "a search in a string", arguments);
  const Value wanted = parameters.RequiredText("sub");
  const auto window = Window(workspace, self, &parameters);
  const std::string_view all = self.AsText()->bytes();
  if (!workspace->ok() || !workspace->StepOver(all.size())) return {};
  const std::string& part = wanted.AsText()->bytes();
  const std::string_view text =
      window.has_value() ? all.substr(window->begin, window->end - window->begin) : "";
  if (kSearch == Search::kCount) {
    if (!window.has_value()) return std::int64_t{0};
    if (part.empty()) return static_cast<std::int64_t>(CharactersIn(text)) + 1;
    std::int64_t count = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
      ++count;
    return count;
  }
  const bool last = kSearch == Search::kFindLast || kSearch == Search::kIndexLast;
  std::size_t at = std::string_view::npos;
  if (window.has_value()) at = last ? text.rfind(part) : text.find(part);
  if (at != std::string_view::npos) {
    return static_cast<std::int64_t>(CharactersIn(all.substr(0, window->begin + at)));
  }
  if (kSearch == Search::kIndex || kSearch == Search::kIndexLast) {
    return workspace->Fail("the string that is looked for is not there");
  }
  return std::int64_t{-1};
}

Value ReplaceMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "replace", arguments);
  const Value from = parameters.RequiredText("old");
  const Value to = parameters.RequiredText("new");
  const std::int64_t count = parameters.Integer("count", -1);
  if (!parameters.Close()) return {};
  return Replace(workspace, *self.AsText(), *from.AsText(), *to.AsText(), count);
}

template <bool kAtEnd>
Value RemoveAffix(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, kAtEnd ? "removesuffix" : "removeprefix", arguments);
  const Value affix = parameters.RequiredText("affix");
  if (!parameters.Close()) return {};
  const Text& text = *self.AsText();
  const std::string& bytes = affix.AsText()->bytes();
  const bool has = kAtEnd ? text.bytes().ends_with(bytes) : text.bytes().starts_with(bytes);
  if (!has) return self;
  return kAtEnd ? Part(workspace, text, 0, text.size() - bytes.size())
                : Part(workspace, text, bytes.size(), text.size());
}

Value JoinMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  Parameters parameters(workspace, "join", arguments);
  const Value given = parameters.Required("iterable");
  std::vector<Value> items;
  if (!parameters.Close() || !Iterate(workspace, given, &items)) return {};
  for (const Value& item : items) {
    if (!item.IsString()) {
      return workspace->Fail("join takes strings, not a {}", item.TypeName());
    }
  }
  return JoinTexts(workspace, *self.AsText(), items);
}

Value FormatMethod(Workspace* workspace, const Value& self, Arguments* arguments) {
  return FormatBraces(workspace, *self.AsText(), *arguments);
}

constexpr std::array kTextMethods = {
    NamedMethod{"strip", StripMethod<true, true>},
    NamedMethod{"lstrip", StripMethod<true, false>},
    NamedMethod{"rstrip", StripMethod<false, true>},
    NamedMethod{"split", Split<false>},
    NamedMethod{"rsplit", Split<true>},
    NamedMethod{"splitlines", SplitLines},
    NamedMethod{"partition", Partition<false>},
    NamedMethod{"rpartition", Partition<true>},
    NamedMethod{"startswith", HasAffix<false>},
    NamedMethod{"endswith", HasAffix<true>},
    NamedMethod{"removeprefix", RemoveAffix<false>},
    NamedMethod{"removesuffix", RemoveAffix<true>},
    NamedMethod{"replace", ReplaceMethod},
    NamedMethod{"join", JoinMethod},
    NamedMethod{"format", FormatMethod},
    NamedMethod{"find", SearchMethod<Search::kFind>},
    NamedMethod{"rfind", SearchMethod<Search::kFindLast>},
    NamedMethod{"index", SearchMethod<Search::kIndex>},
    NamedMethod{"rindex", SearchMethod<Search::kIndexLast>},
    NamedMethod{"count", SearchMethod<Search::kCount>},
};

}  // namespace

std::span<const NamedMethod> TextMethods() { return kTextMethods; }

}  // namespace foretoken::jinja
