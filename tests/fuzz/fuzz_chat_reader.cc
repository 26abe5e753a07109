// Answers of chats: whatever is written, in whichever pieces it comes, its parts are the same, and
// arguments follow the call that they are of.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "foretoken/chat_format.h"

namespace {

using namespace foretoken;  // NOLINT: a program of its own.

// Parts of one kind joined, so that pieces do not show.
std::vector<ChatPart> Read(const ChatReading& reading, std::string_view text, std::size_t size) {
  ChatReader reader(reading);
  std::vector<ChatPart> parts;
  for (std::size_t at = 0; at < text.size(); at += size) reader.Push(text.substr(at, size), &parts);
  reader.Finish(&parts);
  std::vector<ChatPart> joined;
  for (const ChatPart& part : parts) {
    const bool call = part.kind == ChatPart::Kind::kCall;
    if (!call && !joined.empty() && joined.back().kind == part.kind) {
      joined.back().text += part.text;
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

}  // namespace

// The first byte chooses the form, the second how the answer begins and the size of pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const std::vector<std::string_view> kForms = CallFormNames();
  const CallForm* form = FindCallForm(kForms[data[0] % kForms.size()]);
  ChatReading reading{.format = FindChatFormat("</think>", form),
                      .in_reasoning = (data[1] & 1) != 0};
  if ((data[1] & 2) == 0) reading.tools = {{"f", R"({"properties":{"s":{"type":"string"}}})"}};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<ChatPart> whole = Read(reading, text, text.size() + 1);
  FT_CHECK(whole == Read(reading, text, 1));
  FT_CHECK(whole == Read(reading, text, 1 + data[1] / 4));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    FT_CHECK(whole[i].kind != ChatPart::Kind::kArguments ||
             (i > 0 && whole[i - 1].kind == ChatPart::Kind::kCall));
    FT_CHECK(whole[i].kind != ChatPart::Kind::kCall || !whole[i].text.empty());
    FT_CHECK(!reading.tools.empty() || whole[i].kind == ChatPart::Kind::kContent ||
             whole[i].kind == ChatPart::Kind::kReasoning);
  }
  return 0;
}
