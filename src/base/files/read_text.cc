#include "base/files/read_text.h"

#include <cstdint>
#include <string_view>

#include "base/files/read_file.h"
#include "base/text/utf8.h"

namespace foretoken {
namespace {

// Takes a character off the front of UTF-16, two bytes or four; nothing where there is none.
class Utf16 {
 public:
  Utf16(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  bool empty() const { return bytes_.empty(); }

  bool Take(std::uint32_t* code) {
    if (!TakeUnit(code)) return false;
    if (*code < 0xD800 || *code > 0xDFFF) return true;
    std::uint32_t low = 0;
    if (*code > 0xDBFF || !TakeUnit(&low) || low < 0xDC00 || low > 0xDFFF) return false;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return true;
  }

 private:
  bool TakeUnit(std::uint32_t* unit) {
    if (bytes_.size() < 2) return false;
    const auto first = static_cast<std::uint8_t>(bytes_[0]);
    const auto second = static_cast<std::uint8_t>(bytes_[1]);
    *unit = big_endian_ ? first << 8 | second : second << 8 | first;
    bytes_.remove_prefix(2);
    return true;
  }

  std::string_view bytes_;
  bool big_endian_;
};

}  // namespace

Result<std::string> DecodeText(std::string bytes) {
  constexpr std::string_view kUtf8 = "\xEF\xBB\xBF";
  constexpr std::string_view kLittle = "\xFF\xFE";
  constexpr std::string_view kBig = "\xFE\xFF";
  if (bytes.starts_with(kUtf8)) return bytes.substr(kUtf8.size());
  if (!bytes.starts_with(kLittle) && !bytes.starts_with(kBig)) return bytes;
  Utf16 rest(std::string_view(bytes).substr(2), bytes.starts_with(kBig));
  std::string text;
  while (!rest.empty()) {
    std::uint32_t code = 0;
    // A text has no NUL: that is how UTF-32 begins.
    if (!rest.Take(&code) || code == 0) {
      return InvalidInput("it begins as UTF-16 does and is none; save it as UTF-8");
    }
    AppendUtf8(code, &text);
  }
  return text;
}

Result<std::string> ReadText(const std::filesystem::path& path, std::size_t most) {
  FT_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, most));
  return DecodeText(std::move(bytes));
}

}  // namespace foretoken
