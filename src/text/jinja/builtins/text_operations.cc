#include "text/jinja/builtins/text_operations.h"

#include "text/jinja/letters.h"
#include "text/jinja/python_text.h"

namespace foretoken::jinja {
namespace {

/// Where the character that ends at `end` begins.
std::size_t Before(std::string_view bytes, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(bytes[end]) & 0xC0) == 0x80);
  return end;
}

bool IsLineEnd(std::uint32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

Value Part(Workspace* workspace, const Text& text, std::size_t begin, std::size_t end) {
  TextBuilder builder(workspace);
  builder.Append(text, begin, end);
  return builder.Finish();
}

Value Strip(Workspace* workspace, const Text& text, const Value& characters, Sides sides) {
  const std::string_view bytes = text.bytes();
  const Text* chosen = characters.AsText();
  const auto goes = [&](std::size_t begin, std::size_t end) {
    if (chosen != nullptr) {
      return chosen->bytes().find(bytes.substr(begin, end - begin)) != std::string::npos;
    }
    std::size_t length = 0;
    return IsSpace(CodeAt(bytes, begin, &length));
  };
  std::size_t begin = 0;
  std::size_t end = bytes.size();
  const std::size_t each = chosen == nullptr ? 1 : 1 + chosen->size() / 32;
  while (sides.left && begin < end && workspace->Step(each)) {
    std::size_t length = 0;
    CodeAt(bytes, begin, &length);
    if (!goes(begin, begin + length)) break;
    begin += length;
  }
  while (sides.right && begin < end && workspace->Step(each)) {
    const std::size_t last = Before(bytes, end);
    if (!goes(last, end)) break;
    end = last;
  }
  return Part(workspace, text, begin, end);
}

Value Replace(Workspace* workspace, const Text& text, const Text& from, const Text& to,
              std::int64_t count) {
  TextBuilder builder(workspace);
  const std::string_view bytes = text.bytes();
  workspace->StepOver(bytes.size());
  std::size_t kept = 0;
  std::size_t at = 0;
  for (; count != 0; --count) {
    at = from.empty() ? at : bytes.find(from.bytes(), kept);
    if (at == std::string_view::npos || at > bytes.size()) break;
    if (!builder.Append(text, kept, at) || !builder.Append(to)) break;
    kept = at + from.size();
    if (!from.empty()) continue;
    // Nothing is found before every character and at the end.
    std::size_t length = 1;
    if (at < bytes.size()) CodeAt(bytes, at, &length);
    at += length;
  }
  builder.Append(text, kept, bytes.size());
  return builder.Finish();
}

std::vector<Span> Lines(const Text& text, bool keep) {
  std::vector<Span> lines;
  const std::string_view bytes = text.bytes();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    const std::uint32_t code = CodeAt(bytes, at, &length);
    std::size_t next = at + length;
    if (IsLineEnd(code)) {
      if (code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back({begin, keep ? next : at});
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back({begin, bytes.size()});
  return lines;
}

Value Upper(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  const auto map = [](std::uint32_t code, std::size_t, std::string* replacement) {
    if (code < 0x80 && (code < 'a' || code > 'z')) return false;
    AppendUpper(code, replacement);
    return true;
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

Value Lower(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  const auto map = [&text](std::uint32_t code, std::size_t place, std::string* replacement) {
    if (code < 0x80 && (code < 'A' || code > 'Z')) return false;
    AppendLower(text.bytes(), place, replacement);
    return true;
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

Value Capitalize(Workspace* workspace, const Text& text) {
  TextBuilder builder(workspace);
  const auto map = [&text](std::uint32_t code, std::size_t place, std::string* replacement) {
    if (place == 0) {
      AppendTitle(code, replacement);
    } else {
      AppendLower(text.bytes(), place, replacement);
    }
    return true;
  };
  AppendMapped(text, map, &builder);
  return builder.Finish();
}

Value Escape(Workspace* workspace, const Value& string) {
  if (string.IsSafe()) return string;
  TextBuilder builder(workspace);
  const auto map = [](std::uint32_t code, std::size_t, std::string* replacement) {
    *replacement = code == '&'    ? "&amp;"
                   : code == '<'  ? "&lt;"
                   : code == '>'  ? "&gt;"
                   : code == '\'' ? "&#39;"
                   : code == '"'  ? "&#34;"
                                  : "";
    return !replacement->empty();
  };
  AppendMapped(*string.AsText(), map, &builder);
  return builder.Finish(/*is_safe=*/true);
}

Value JoinTexts(Workspace* workspace, const Text& separator, const std::vector<Value>& items) {
  TextBuilder builder(workspace);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && !builder.Append(separator)) break;
    if (!AppendStr(items[i], &builder)) break;
  }
  return builder.Finish();
}

}  // namespace foretoken::jinja
