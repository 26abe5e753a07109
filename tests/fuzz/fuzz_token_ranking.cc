#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/tokenizer/pair/token_ranking.h"

// A ranking of tokens. What is accepted must be written and read back as it was.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto ranking = foretoken::ParseTokenRanking(text, "fuzz");
  if (!ranking.ok()) {
    const std::string& message = ranking.error().message;
    if (message.empty() || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto again = foretoken::ParseTokenRanking(foretoken::FormatTokenRanking(*ranking), "fuzz");
  if (!again.ok() || *again != *ranking) std::abort();
  return 0;
}
