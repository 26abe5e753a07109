#include "text/jinja/python_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "base/text/utf8.h"
#include "text/jinja/letters.h"

namespace foretoken::jinja {
namespace {

constexpr int kDeepestPrinted = 100;

/// "\n", "\x07", "\u200b": how repr() shows a character that it does not show as it is.
std::string EscapedCharacter(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code <= 0xFF) return fmt::format("\\x{:02x}", code);
  if (code <= 0xFFFF) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\U{:08x}", code);
}

bool AppendQuoted(const Text& text, TextBuilder* builder) {
  const std::string& bytes = text.bytes();
  const bool doubled =
      bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const std::string_view quote = doubled ? "\"" : "'";
  const auto map = [&](std::uint32_t code, std::size_t, std::string* replacement) {
    if (code == '\\' || code == static_cast<unsigned char>(quote[0])) {
      *replacement = {'\\', static_cast<char>(code)};
    } else if (!IsPrintable(code)) {
      *replacement = EscapedCharacter(code);
    }
    return !replacement->empty();
  };
  return builder->Append(quote) && AppendMapped(text, map, builder) && builder->Append(quote);
}

bool AppendReprAt(const Value& value, TextBuilder* builder, int depth);

bool AppendItems(const std::vector<Value>& items, TextBuilder* builder, int depth) {
  std::string_view separator;
  for (const Value& item : items) {
    if (!builder->Append(separator) || !AppendReprAt(item, builder, depth)) return false;
    separator = ", ";
  }
  return true;
}

bool AppendList(const List& list, TextBuilder* builder, int depth) {
  if (list.kind == List::Kind::kList) {
    return builder->Append("[") && AppendItems(list.items, builder, depth) && builder->Append("]");
  }
  const std::string_view end = list.items.size() == 1 ? ",)" : ")";
  return builder->Append("(") && AppendItems(list.items, builder, depth) && builder->Append(end);
}

bool AppendDict(const Dict& dict, TextBuilder* builder, int depth) {
  if (!builder->Append("{")) return false;
  std::string_view separator;
  for (const auto& [key, value] : dict.entries) {
    if (!builder->Append(separator) || !AppendReprAt(key, builder, depth)) return false;
    if (!builder->Append(": ") || !AppendReprAt(value, builder, depth)) return false;
    separator = ", ";
  }
  return builder->Append("}");
}

bool AppendReprAt(const Value& value, TextBuilder* builder, int depth) {
  if (depth > kDeepestPrinted) {
    builder->workspace()->Fail("lists within more than {} others cannot be printed",
                               kDeepestPrinted);
    return false;
  }
  if (value.IsUndefined()) return builder->Append("Undefined");
  if (value.IsNone()) return builder->Append("None");
  if (const bool* flag = value.AsBool()) return builder->Append(*flag ? "True" : "False");
  if (const double* number = value.AsFloat()) return builder->Append(FloatText(*number));
  if (const auto integer = value.Integer()) return builder->Append(fmt::format("{}", *integer));
  if (const Text* text = value.AsText()) return AppendQuoted(*text, builder);
  if (const Dict* dict = value.AsDict()) return AppendDict(*dict, builder, depth + 1);
  const List* list = value.AsList();
  if (list != nullptr && (list->kind == List::Kind::kList || list->kind == List::Kind::kTuple)) {
    return AppendList(*list, builder, depth + 1);
  }
  builder->workspace()->Fail("a {} has no text{}", value.TypeName(),
                             list != nullptr ? "; the filter list gives it one" : "");
  return false;
}

}  // namespace

std::string FloatText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool AppendStr(const Value& value, TextBuilder* builder) {
  if (const Text* text = value.AsText()) return builder->Append(*text);
  if (value.IsUndefined()) return builder->workspace()->ok();
  return AppendReprAt(value, builder, 0);
}

bool AppendRepr(const Value& value, TextBuilder* builder) {
  return AppendReprAt(value, builder, 0);
}

Value Str(Workspace* workspace, const Value& value) {
  if (value.IsString()) return value;
  TextBuilder builder(workspace);
  AppendStr(value, &builder);
  return builder.Finish();
}

}  // namespace foretoken::jinja
