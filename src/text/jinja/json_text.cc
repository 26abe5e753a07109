#include "text/jinja/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/letters.h"
#include "text/jinja/operations.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

constexpr int kDeepestJson = 100;

std::string EscapedUnit(std::uint32_t unit) { return fmt::format("\\u{:04x}", unit); }

bool AppendEscape(std::uint32_t code, bool ascii, std::string* out) {
  constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  const std::size_t named = code < 0x80 ? kNamed.find(static_cast<char>(code)) : kNamed.npos;
  if (named != kNamed.npos) {
    *out = {'\\', kLetters[named]};
  } else if (code < 0x20 || (ascii && code >= 0x80 && code <= 0xFFFF)) {
    *out = EscapedUnit(code);
  } else if (ascii && code > 0xFFFF) {
    const std::uint32_t above = code - 0x10000;
    *out = EscapedUnit(0xD800 + (above >> 10)) + EscapedUnit(0xDC00 + (above & 0x3FF));
  }
  return !out->empty();
}

/// Numbers, and the words that JSON has; nothing for other values.
std::optional<std::string> PlainText(const Value& value) {
  if (value.IsNone()) return "null";
  if (const bool* flag = value.AsBool()) return *flag ? "true" : "false";
  if (const auto integer = value.Integer()) return fmt::format("{}", *integer);
  const double* number = value.AsFloat();
  if (number == nullptr) return std::nullopt;
  if (std::isnan(*number)) return "NaN";
  if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
  return FloatText(*number);
}

class Writer {
 public:
  Writer(const JsonStyle& style, TextBuilder* builder) : style_(style), builder_(builder) {}

  bool Write(const Value& value, int level) {
    if (level > kDeepestJson)
      return Fail(fmt::format("more than {} lists within each other", kDeepestJson));
    if (const auto plain = PlainText(value)) return builder_->Append(*plain);
    if (const Text* text = value.AsText()) return WriteText(*text);
    if (const Dict* dict = value.AsDict()) return WriteDict(*dict, level);
    const List* list = value.AsList();
    if (list != nullptr && (list->kind == List::Kind::kList || list->kind == List::Kind::kTuple)) {
      return WriteList(*list, level);
    }
    return Fail(fmt::format("a {}{}", value.TypeName(),
                            list != nullptr ? ", which the filter list would make a list" : ""));
  }

 private:
  bool Fail(const std::string& what) {
    builder_->workspace()->Fail("tojson cannot write " + what);
    return false;
  }

  bool WriteText(const Text& text) {
    const auto map = [this](std::uint32_t code, std::size_t, std::string* replacement) {
      return AppendEscape(code, style_.ascii, replacement);
    };
    return builder_->Append("\"") && AppendMapped(text, map, builder_) && builder_->Append("\"");
  }

  bool NewLine(int level) {
    if (!style_.lines) return true;
    if (!builder_->Append("\n")) return false;
    for (; level > 0; --level) {
      if (!builder_->Append(style_.indent)) return false;
    }
    return true;
  }

  bool WriteList(const List& list, int level) {
    if (list.items.empty()) return builder_->Append("[]");
    if (!builder_->Append("[")) return false;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0 && !builder_->Append(style_.between_items)) return false;
      if (!NewLine(level + 1) || !Write(list.items[i], level + 1)) return false;
    }
    return NewLine(level) && builder_->Append("]");
  }

  bool WriteKey(const Value& key) {
    if (const Text* text = key.AsText()) return WriteText(*text);
    const auto plain = PlainText(key);
    if (!plain.has_value()) return Fail(fmt::format("a {} as a key", key.TypeName()));
    return builder_->Append(fmt::format("\"{}\"", *plain));
  }

  bool WriteDict(const Dict& dict, int level) {
    if (dict.entries.empty()) return builder_->Append("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    if (!builder_->workspace()->Step(dict.entries.size())) return false;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys && !Sort(&entries)) return false;
    if (!builder_->Append("{")) return false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0 && !builder_->Append(style_.between_items)) return false;
      if (!NewLine(level + 1) || !WriteKey(entries[i]->first)) return false;
      if (!builder_->Append(style_.behind_keys)) return false;
      if (!Write(entries[i]->second, level + 1)) return false;
    }
    return NewLine(level) && builder_->Append("}");
  }

  bool Sort(std::vector<const std::pair<Value, Value>*>* entries) {
    Workspace* workspace = builder_->workspace();
    std::ranges::stable_sort(*entries, [workspace](const auto* a, const auto* b) {
      return workspace->ok() && Less(workspace, a->first, b->first);
    });
    return workspace->ok();
  }

  const JsonStyle& style_;
  TextBuilder* builder_;
};

Value FromJsonAt(Workspace* workspace, const Json& json, int depth) {
  if (depth > kDeepestJson) {
    return workspace->Fail(fmt::format("the inputs have more than {} levels", kDeepestJson));
  }
  switch (json.kind()) {
    case Json::Kind::kBoolean:
      return json.get<bool>();
    case Json::Kind::kInteger:
      return json.get<std::int64_t>();
    case Json::Kind::kFloat:
      return json.get<double>();
    case Json::Kind::kString:
      return workspace->NewString(json.text(), /*from_input=*/true);
    case Json::Kind::kUnsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return static_cast<std::int64_t>(number);
      }
      return workspace->Fail(
          fmt::format("the inputs have the number {}, which is too large", number));
    }
    case Json::Kind::kArray: {
      List* list = workspace->NewList();
      for (const Json& item : json) {
        if (!workspace->Push(list, FromJsonAt(workspace, item, depth + 1))) break;
      }
      return list;
    }
    case Json::Kind::kObject: {
      Dict* dict = workspace->NewDict();
      for (const auto& [key, value] : json.items()) {
        const Value name = workspace->NewString(key, /*from_input=*/true);
        if (!workspace->Set(dict, name, FromJsonAt(workspace, value, depth + 1))) break;
      }
      return dict;
    }
    default:
      return None{};
  }
}

}  // namespace

bool AppendJson(const Value& value, const JsonStyle& style, TextBuilder* builder) {
  return Writer(style, builder).Write(value, 0);
}

Value FromJson(Workspace* workspace, const Json& json) { return FromJsonAt(workspace, json, 0); }

}  // namespace foretoken::jinja
