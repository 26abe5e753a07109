#include "apps/foretoken/common/shown_text.h"

#include <cstdint>

#include "apps/foretoken/common/terminal.h"
#include "base/text/utf8.h"

namespace foretoken {

std::string WithoutControls(std::string_view text) {
  // Pictures of the characters below the space, in their order.
  constexpr std::uint32_t kPictures = 0x2400;
  constexpr std::uint32_t kPictureOfDelete = 0x2421;
  constexpr std::uint32_t kReplacement = 0xFFFD;
  std::string shown;
  while (!text.empty()) {
    const Utf8Step step = ReadUtf8(text);
    const std::string_view character = text.substr(0, step.size);
    text.remove_prefix(step.size);
    const std::uint32_t code = step.code;
    if (step.kind != Utf8Step::kCharacter || (code >= 0x80 && code < 0xA0)) {
      AppendUtf8(kReplacement, &shown);
    } else if (code == '\n' || code == '\t' || (code >= ' ' && code != 0x7F)) {
      shown += character;
    } else {
      AppendUtf8(code == 0x7F ? kPictureOfDelete : kPictures + code, &shown);
    }
  }
  return shown;
}

std::string ShownText(std::string_view text, std::FILE* stream) {
  return IsTerminal(stream) ? WithoutControls(text) : std::string(text);
}

}  // namespace foretoken
