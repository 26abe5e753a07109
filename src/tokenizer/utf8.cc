#include "tokenizer/utf8.h"

#include <cstdint>

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

Utf8Step ReadUtf8(std::string_view bytes) {
  const LeadByte lead = ClassifyLead(static_cast<std::uint8_t>(bytes[0]));
  if (lead.length == 0) return {Utf8Step::kInvalid, 1};
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Step::kIncomplete, i};
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::kInvalid, i};
  }
  return {Utf8Step::kCharacter, lead.length};
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
