#include <algorithm>
#include <array>

#include "base/text/utf8.h"
#include "text/jinja/builtins/builtins.h"
#include "text/jinja/builtins/format.h"
#include "text/jinja/builtins/parameters.h"
#include "text/jinja/builtins/text_operations.h"
#include "text/jinja/json_text.h"
#include "text/jinja/letters.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

template <Value (*kOperation)(Workspace*, const Text&)>
Value PlainFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "a filter for letter case", arguments);
  const Value string = Str(workspace, input);
  return parameters.Close() ? kOperation(workspace, *string.AsText()) : Value();
}

Value StringFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "string", arguments);
  return parameters.Close() ? Str(workspace, input) : Value();
}

Value TrimFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "trim", arguments);
  const Value characters = parameters.OptionalText("chars");
  const Value string = Str(workspace, input);
  if (!parameters.Close()) return {};
  return Strip(workspace, *string.AsText(), characters, {});
}

/// A capital begins every word; words begin behind white space, hyphens and opening brackets.
Value TitleByWords(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  bool begins = true;
  const auto map = [&](std::uint32_t code, std::size_t place, std::string* replacement) {
    if (IsSpace(code) || (code < 0x80 && std::string_view("-({[<").find(static_cast<char>(code)) !=
                                             std::string_view::npos)) {
      begins = true;
      return false;
    }
    if (begins) {
      AppendUpper(code, replacement);
    } else {
      AppendLower(text.bytes(), place, replacement);
    }
    begins = false;
    return true;
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

Value ReplaceFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "replace", arguments);
  const Value string = Str(workspace, input);
  const Value from = Str(workspace, parameters.Required("old"));
  const Value to = Str(workspace, parameters.Required("new"));
  const Value count = parameters.Optional("count");
  if (!parameters.Close()) return {};
  return Replace(workspace, *string.AsText(), *from.AsText(), *to.AsText(),
                 count.Integer().value_or(-1));
}

/// Spaces for a number, a string as it is.
Value Indentation(Workspace* workspace, const Value& width) {
  if (width.IsString()) return width;
  TextBuilder builder(workspace);
  if (!width.Integer().has_value()) return workspace->Fail("an indent is a number or a string");
  for (std::int64_t i = 0; i < *width.Integer() && builder.Append(" "); ++i) continue;
  return builder.Finish();
}

Value Indent(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "indent", arguments);
  const Value by = Indentation(workspace, parameters.Optional("width", std::int64_t{4}));
  const bool first = parameters.Flag("first", false);
  const bool blank = parameters.Flag("blank", false);
  if (!parameters.Close()) return {};
  const Text* text = input.AsText();
  if (text == nullptr) {
    return workspace->Fail("indent takes a string, not a {}", input.TypeName());
  }
  if (!workspace->Spend(text->size())) return {};
  workspace->Refund(text->size());
  std::vector<Span> lines = Lines(*text, false);
  // A last line without an end has one for this filter, and so has an empty one.
  if (text->empty() || Lines(*text, true).back().end == lines.back().end) {
    if (text->empty()) lines.push_back({});
  } else {
    lines.push_back({text->size(), text->size()});
  }
  TextBuilder builder(workspace);
  for (std::size_t i = 0; i < lines.size() && workspace->ok(); ++i) {
    if (i > 0) builder.Append("\n");
    const bool empty = lines[i].begin == lines[i].end;
    if (i == 0 ? first : blank || !empty) builder.Append(*by.AsText());
    builder.Append(*text, lines[i].begin, lines[i].end);
  }
  return builder.Finish();
}

Value EscapeFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "escape", arguments);
  const Value string = Str(workspace, input);
  return parameters.Close() ? Escape(workspace, string) : Value();
}

Value Safe(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "safe", arguments);
  TextBuilder builder(workspace);
  if (!parameters.Close()) return {};
  AppendStr(input, &builder);
  return builder.Finish(/*is_safe=*/true);
}

Value Center(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "center", arguments);
  const std::int64_t width = parameters.Integer("width", 80);
  const Value string = Str(workspace, input);
  if (!parameters.Close()) return {};
  Arguments passed{{width}, {}};
  return FindMethod(string, "center")->body(workspace, string, &passed);
}

Value FormatFilter(Workspace* workspace, const Value& input, Arguments* arguments) {
  const Value string = Str(workspace, input);
  if (!arguments->named.empty()) {
    if (!arguments->positional.empty()) {
      return workspace->Fail("format takes values by place or by name, not both");
    }
    Dict* names = workspace->NewDict();
    for (const auto& [name, value] : arguments->named) {
      workspace->Set(names, workspace->NewString(name), value);
    }
    return FormatPercent(workspace, *string.AsText(), names);
  }
  List* values = workspace->NewList(List::Kind::kTuple);
  for (const Value& value : arguments->positional) workspace->Push(values, value);
  return FormatPercent(workspace, *string.AsText(), values);
}

Value Truncate(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "truncate", arguments);
  const std::int64_t length = parameters.Integer("length", 255);
  const bool kill_words = parameters.Flag("killwords", false);
  const Value end = parameters.OptionalText("end", workspace->NewString("..."));
  const std::int64_t leeway = parameters.Integer("leeway", 5);
  const Value string = Str(workspace, input);
  if (!parameters.Close()) return {};
  const std::int64_t end_length = Length(end).value_or(0);
  if (end.IsNone() || length < end_length || leeway < 0) {
    return workspace->Fail("truncate needs a length of at least that of its end");
  }
  if (*Length(string) - leeway <= length) return string;
  const Value cut = GetSlice(workspace, string, None{}, length - end_length, None{});
  if (!workspace->ok()) return {};
  const std::size_t space = kill_words ? std::string::npos : cut.AsText()->bytes().rfind(' ');
  TextBuilder builder(workspace);
  builder.Append(*cut.AsText(), 0, std::min(space, cut.AsText()->size()));
  builder.Append(*end.AsText());
  return builder.Finish();
}

Value WordCount(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "wordcount", arguments);
  const Value string = Str(workspace, input);
  if (!parameters.Close() || !workspace->StepOver(string.AsText()->size())) return {};
  const std::string& bytes = string.AsText()->bytes();
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    const std::uint32_t code = CodeAt(bytes, at, &length);
    const bool word = code == '_' || IsLetter(code) || IsDecimal(code);
    if (word && !inside) ++count;
    inside = word;
    at += length;
  }
  return count;
}

/// The two separators, as json.dumps has them where nothing else is said.
bool ReadSeparators(Workspace* workspace, const Value& given, JsonStyle* style) {
  style->between_items = Text(style->lines ? "," : ", ");
  style->behind_keys = Text(": ");
  if (given.IsNone()) return workspace->ok();
  std::vector<Value> both;
  if (!Iterate(workspace, given, &both)) return false;
  if (both.size() != 2 || !both[0].IsString() || !both[1].IsString()) {
    workspace->Fail("the separators of tojson are two strings");
    return false;
  }
  style->between_items = *both[0].AsText();
  style->behind_keys = *both[1].AsText();
  return true;
}

Value ToJson(Workspace* workspace, const Value& input, Arguments* arguments) {
  Parameters parameters(workspace, "tojson", arguments);
  JsonStyle style;
  style.ascii = parameters.Flag("ensure_ascii", false);
  const Value indent = parameters.Optional("indent");
  const Value separators = parameters.Optional("separators");
  style.sort_keys = parameters.Flag("sort_keys", false);
  if (!parameters.Close()) return {};
  style.lines = !indent.IsNone();
  if (style.lines) {
    const Value by = Indentation(workspace, indent);
    if (!workspace->ok()) return {};
    style.indent = *by.AsText();
  }
  if (!ReadSeparators(workspace, separators, &style)) return {};
  TextBuilder builder(workspace);
  AppendJson(input, style, &builder);
  return builder.Finish();
}

constexpr std::array kTextFilters = {
    NamedFilter{"string", StringFilter},
    NamedFilter{"safe", Safe},
    NamedFilter{"trim", TrimFilter},
    NamedFilter{"upper", PlainFilter<Upper>},
    NamedFilter{"lower", PlainFilter<Lower>},
    NamedFilter{"capitalize", PlainFilter<Capitalize>},
    NamedFilter{"title", PlainFilter<TitleByWords>},
    NamedFilter{"replace", ReplaceFilter},
    NamedFilter{"indent", Indent},
    NamedFilter{"escape", EscapeFilter},
    NamedFilter{"e", EscapeFilter},
    NamedFilter{"forceescape", EscapeFilter},
    NamedFilter{"format", FormatFilter},
    NamedFilter{"center", Center},
    NamedFilter{"truncate", Truncate},
    NamedFilter{"wordcount", WordCount},
    NamedFilter{"tojson", ToJson},
};

}  // namespace

std::span<const NamedFilter> TextFilters() { return kTextFilters; }

}  // namespace foretoken::jinja
