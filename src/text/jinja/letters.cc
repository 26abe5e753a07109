#include "text/jinja/letters.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"

namespace foretoken::jinja {
namespace {

UChar32 Icu(std::uint32_t code) { return static_cast<UChar32>(code); }

/// Whether a sigma at `place` ends its word.
bool IsFinalSigma(std::string_view bytes, std::size_t place, std::size_t length) {
  const auto ignorable = [](std::uint32_t code) {
    return u_hasBinaryProperty(Icu(code), UCHAR_CASE_IGNORABLE) != 0;
  };
  bool cased_before = false;
  for (std::size_t at = place; at > 0 && !cased_before;) {
    do --at;
    while ((static_cast<unsigned char>(bytes[at]) & 0xC0) == 0x80);
    std::size_t size = 0;
    const std::uint32_t code = CodeAt(bytes, at, &size);
    if (ignorable(code)) continue;
    if (!IsCased(code)) return false;
    cased_before = true;
  }
  if (!cased_before) return false;
  for (std::size_t at = place + length; at < bytes.size();) {
    std::size_t size = 0;
    const std::uint32_t code = CodeAt(bytes, at, &size);
    if (!ignorable(code)) return !IsCased(code);
    at += size;
  }
  return true;
}

}  // namespace

std::uint32_t CodeAt(std::string_view bytes, std::size_t place, std::size_t* length) {
  const auto byte = static_cast<unsigned char>(bytes[place]);
  if (byte < 0x80) {
    *length = 1;
    return byte;
  }
  const Utf8Step step = ReadUtf8(bytes.substr(place));
  *length = step.size;
  return step.code;
}

bool IsSpace(std::uint32_t code) {
  if (code < 0x80) return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20);
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool IsPrintable(std::uint32_t code) {
  if (code == ' ') return true;
  const std::uint32_t kinds = U_GET_GC_MASK(Icu(code));
  return (kinds & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

bool IsCased(std::uint32_t code) { return u_hasBinaryProperty(Icu(code), UCHAR_CASED) != 0; }
bool IsLetter(std::uint32_t code) { return (U_GET_GC_MASK(Icu(code)) & U_GC_L_MASK) != 0; }
bool IsDecimal(std::uint32_t code) {
  return u_getIntPropertyValue(Icu(code), UCHAR_NUMERIC_TYPE) == U_NT_DECIMAL;
}
bool IsUpper(std::uint32_t code) { return u_hasBinaryProperty(Icu(code), UCHAR_UPPERCASE) != 0; }
bool IsLower(std::uint32_t code) { return u_hasBinaryProperty(Icu(code), UCHAR_LOWERCASE) != 0; }

bool AllHaveCase(std::string_view bytes, bool upper) {
  bool found = false;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    const std::uint32_t code = CodeAt(bytes, at, &length);
    if (upper ? IsLower(code) : IsUpper(code)) return false;
    found = found || (upper ? IsUpper(code) : IsLower(code));
    at += length;
  }
  return found;
}

void AppendUpper(std::uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code));
    return;
  }
  std::string character;
  AppendUtf8(code, &character);
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(out);
  icu::CaseMap::utf8ToUpper("", 0, character, sink, nullptr, error);
}

void AppendTitle(std::uint32_t code, std::string* out) {
  if (code < 0x80) return AppendUpper(code, out);
  std::string character;
  AppendUtf8(code, &character);
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(out);
  icu::CaseMap::utf8ToTitle("", U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_BREAK_ADJUSTMENT, nullptr,
                            character, sink, nullptr, error);
}

void AppendLower(std::string_view bytes, std::size_t place, std::string* out) {
  std::size_t length = 0;
  const std::uint32_t code = CodeAt(bytes, place, &length);
  if (code < 0x80) {
    out->push_back(static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code));
    return;
  }
  constexpr std::uint32_t kSigma = 0x3A3;
  if (code == kSigma) {
    constexpr std::uint32_t kFinal = 0x3C2;
    constexpr std::uint32_t kOther = 0x3C3;
    return AppendUtf8(IsFinalSigma(bytes, place, length) ? kFinal : kOther, out);
  }
  UErrorCode error = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(out);
  const std::string_view character = bytes.substr(place, length);
  icu::CaseMap::utf8ToLower("", 0, icu::StringPiece(character.data(), Int(length)), sink, nullptr,
                            error);
}

bool AppendMapped(const Text& text, const CharacterMap& map, TextBuilder* builder) {
  const std::string_view bytes = text.bytes();
  std::size_t kept = 0;  // What is before has been appended.
  std::string replacement;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 0;
    const std::uint32_t code = CodeAt(bytes, at, &length);
    replacement.clear();
    if (map(code, at, &replacement)) {
      if (!builder->Append(text, kept, at)) return false;
      if (!builder->Append(replacement, text.IsInput(at))) return false;
      kept = at + length;
    }
    at += length;
  }
  return builder->Append(text, kept, bytes.size());
}

}  // namespace foretoken::jinja
