// A SentencePiece model file: what passes our validation must not upset the library.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text/utf8.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;
  TokenizerConfig config;
  config.special = {"<|im_start|>"};
  const auto loaded =
      LoadSentencePiece(std::string(reinterpret_cast<const char*>(data), size), "fuzz", config);
  if (!loaded.ok()) {
    FT_CHECK(!loaded.error().message.empty());
    return 0;
  }
  const Tokenizer& tokenizer = **loaded;
  IncrementalDecoder decoder(&tokenizer);
  for (const Token token : tokenizer.Encode(
           " a cat  <|im_start|>sat \xE2\x84\xA2 caf\xC3\xA9\n\xFF \xEF\xBC\xA1", true, true)) {
    FT_CHECK(token >= 0 && token < tokenizer.vocabulary());
    FT_CHECK(IsUtf8(decoder.Push(token)));
  }
  FT_CHECK(IsUtf8(decoder.Finish()));
  return 0;
}
