#include "base/utf8.h"

namespace foretoken {
namespace {

struct LeadByte {
  std::size_t length;  // of the character; 0 where no character starts so
  std::uint8_t second_low;
  std::uint8_t second_high;
};

LeadByte ClassifyLead(std::uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

void AppendUtf8(std::uint32_t code, std::string* out) {
  const int length = Utf8Length(code);
  if (length == 1) {
    out->push_back(static_cast<char>(code));
    return;
  }
  const std::uint32_t lead = 0xF00U >> length & 0xFFU;
  out->push_back(static_cast<char>(lead | code >> 6 * (length - 1)));
  for (int i = length - 2; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80U | (code >> 6 * i & 0x3FU)));
  }
}

Utf8Step ReadUtf8(std::string_view bytes) {
  const LeadByte lead = ClassifyLead(static_cast<std::uint8_t>(bytes[0]));
  if (lead.length == 0) return {Utf8Step::kInvalid, 1};
  std::uint32_t code = static_cast<std::uint8_t>(bytes[0]);
  if (lead.length > 1) code &= 0x7FU >> lead.length;
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Step::kIncomplete, i};
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::kInvalid, i};
    code = code << 6 | (byte & 0x3FU);
  }
  return {Utf8Step::kCharacter, lead.length, code};
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

}  // namespace foretoken
