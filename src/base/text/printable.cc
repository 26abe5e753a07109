#include "base/text/printable.h"

namespace foretoken {

std::string Printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 120;
  std::string out(text.substr(0, kMaxLength));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kMaxLength) out += "...";
  return out;
}

}  // namespace foretoken
