// A GGUF file whose metadata may hold a tokenizer. Whatever loads must encode a text to ids of its
// vocabulary and decode them to valid UTF-8.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/text/utf8.h"
#include "core/weights/gguf/gguf_file.h"
#include "door/assembly/gguf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;
  const auto contents = ParseGguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!contents.ok()) return 0;
  const auto loaded = TokenizerFromGguf(contents->metadata, "fuzz");
  if (!loaded.ok()) {
    FT_CHECK(!loaded.error().message.empty() && IsUtf8(loaded.error().message));
    return 0;
  }
  const Tokenizer& tokenizer = **loaded;
  const std::string_view text =
      " a cab  <|im_start|>2024! caf\xC3\xA9\n\t\xF0\x9F\x98\x80 \xFF<s>ab";
  std::vector<Token> tokens = tokenizer.Encode(text, true, true);
  const ChatInput chat{{{"user", std::string(text)}}};
  if (const auto encoded = tokenizer.EncodeChat(chat); encoded.ok()) {
    tokens.insert(tokens.end(), encoded->begin(), encoded->end());
  }
  IncrementalDecoder decoder(&tokenizer);
  for (const Token token : tokens) {
    FT_CHECK(token >= 0 && token < tokenizer.vocabulary());
    FT_CHECK(IsUtf8(tokenizer.TokenName(token)));
    FT_CHECK(IsUtf8(decoder.Push(token)));
  }
  FT_CHECK(IsUtf8(decoder.Finish()));
  for (const Token token : tokenizer.eos()) {
    FT_CHECK(token >= 0 && token < tokenizer.vocabulary());
  }
  return 0;
}
