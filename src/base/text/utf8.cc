#include "base/text/utf8.h"

#include <unicode/utf8.h>

#include <algorithm>

namespace foretoken {

void AppendUtf8(std::uint32_t code, std::string* out) {
  char bytes[U8_MAX_LENGTH];
  std::size_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, code);
  out->append(bytes, length);
}

Utf8Step ReadUtf8(std::string_view bytes) {
  std::size_t size = 0;
  UChar32 code = 0;
  U8_NEXT(bytes.data(), size, bytes.size(), code);
  if (code >= 0) return {Utf8Step::kCharacter, size, static_cast<std::uint32_t>(code)};
  // What went wrong at the end, after good bytes only, is not wrong yet.
  const bool incomplete = size == bytes.size() && U8_IS_LEAD(bytes[0]);
  return {incomplete ? Utf8Step::kIncomplete : Utf8Step::kInvalid, size};
}

bool TakeUtf8(std::string_view* text, std::uint32_t* code) {
  if (text->empty()) return false;
  const Utf8Step step = ReadUtf8(*text);
  if (step.kind != Utf8Step::kCharacter) return false;
  text->remove_prefix(step.size);
  *code = step.code;
  return true;
}

std::size_t ValidUtf8Prefix(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const Utf8Step step = ReadUtf8(bytes.substr(i));
    if (step.kind != Utf8Step::kCharacter) break;
    i += step.size;
  }
  return i;
}

std::size_t CharactersIn(std::string_view text) {
  return std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

std::string Shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace foretoken
