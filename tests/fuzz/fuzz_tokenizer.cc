// A tokenizer.json, then optionally a NUL and a text. Whatever loads must encode the text to ids of
// its vocabulary and decode them to valid UTF-8.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text/utf8.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t nul = input.find('\0');
  std::string_view text = "Don't mix  caf\xC3\xA9 & 2024<|im_start|>\n\t\xF0\x9F\x98\x80 \xFF!";
  if (nul != std::string_view::npos) text = input.substr(nul + 1);

  TokenizerConfig config;
  config.bos = "<|im_start|>";
  config.eos = "<|im_end|>";
  config.special = {"<|im_start|>", "<|im_end|>"};
  config.chat_templates.by_name["default"] = BuiltInChatTemplate("chatml").value();
  const auto loaded = ParseTokenizerJson(input.substr(0, nul), "fuzz", config);
  if (!loaded.ok()) {
    FT_CHECK(!loaded.error().message.empty());
    return 0;
  }
  const Tokenizer& tokenizer = **loaded;
  std::vector<Token> tokens = tokenizer.Encode(text, true, true);
  const ChatInput chat{{{"user", std::string(text)}}};
  if (const auto encoded = tokenizer.EncodeChat(chat); encoded.ok()) {
    tokens.insert(tokens.end(), encoded->begin(), encoded->end());
  }
  IncrementalDecoder decoder(&tokenizer);
  for (const Token token : tokens) {
    FT_CHECK(token >= 0 && token < tokenizer.vocabulary());
    FT_CHECK(IsUtf8(decoder.Push(token)));
  }
  FT_CHECK(IsUtf8(decoder.Finish()));
  return 0;
}
