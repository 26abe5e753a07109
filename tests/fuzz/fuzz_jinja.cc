// A chat template, rendered with one chat. Whatever it does, it stays within its limits, its text
// is valid UTF-8 with input marked where input is, and an error is a sentence.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/check.h"
#include "base/text/utf8.h"
#include "json/json.h"
#include "text/jinja/template.h"

namespace {

using foretoken::Json;
using foretoken::jinja::Inputs;
using foretoken::jinja::Limits;
using foretoken::jinja::Span;
using foretoken::jinja::Template;
using foretoken::jinja::Text;

const Inputs& Chat() {
  static const std::tm now{};
  static const Inputs chat = {.data = Json::Parse(R"({
        "messages": [
          {"role": "system", "content": "Be kind."},
          {"role": "user", "content": " na\u00efve \ud83d\ude00 <|end|>\n\"x\" "},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "function": {"name": "f", "arguments": {"a": [1, 2.5, true, null]}}}]},
          {"role": "tool", "content": "{}"},
          {"role": "user", "content": [{"type": "text", "text": "\u03a3\u03a3"}]}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {
          "type": "object", "properties": {"a": {"type": "array", "items": {}}}}}}],
        "documents": null, "add_generation_prompt": true, "n": -3, "x": 0.1})"),
                              .own = {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                              .now = &now};
  return chat;
}

void CheckText(const Text& text, const Limits& limits) {
  FT_CHECK(text.size() <= limits.output);
  FT_CHECK(foretoken::IsUtf8(text.bytes()));
  std::size_t end = 0;
  for (const Span& span : text.inputs()) {
    FT_CHECK(span.begin < span.end && span.end <= text.size());
    FT_CHECK(end == 0 || span.begin > end);
    end = span.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = Template::Parse(source);
  if (!parsed.ok()) {
    FT_CHECK(!parsed.error().message.empty() && foretoken::IsUtf8(parsed.error().message));
    return 0;
  }
  const Limits limits = {
      .steps = 200'000, .memory = std::size_t{4} << 20, .output = 100'000, .depth = 200};
  const auto text = parsed->Render(Chat(), limits);
  const auto again = parsed->Render(Chat(), limits);
  FT_CHECK(text.ok() == again.ok());
  if (!text.ok()) {
    FT_CHECK(text.error().message == again.error().message);
    FT_CHECK(!text.error().message.empty() && foretoken::IsUtf8(text.error().message));
    return 0;
  }
  FT_CHECK(text->bytes() == again->bytes());
  CheckText(*text, limits);
  return 0;
}
