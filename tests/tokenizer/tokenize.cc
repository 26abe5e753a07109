// Tokens of texts, for tests that compare them with other implementations: tokenize SOURCE, where
// SOURCE is a GGUF file or a folder with a tokenizer. Standard input holds records of a byte (1:
// special tokens written out count), the length of a text as 4 little-endian bytes, and the text.
// The first line of the output is the fingerprint, then come bos and eos; each further line has the
// ids of a text.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {
namespace {

void Print(const std::vector<Token>& tokens) {
  std::string line;
  for (const Token token : tokens) line += std::to_string(token) + ' ';
  std::puts(line.c_str());
}

int Run(const char* source) {
  const auto tokenizer = Tokenizer::Load(source);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::puts((*tokenizer)->fingerprint().c_str());
  Print({(*tokenizer)->bos().value_or(-1)});
  Print((*tokenizer)->eos());
  std::uint8_t special = 0;
  std::uint32_t size = 0;
  while (std::fread(&special, 1, 1, stdin) == 1 && std::fread(&size, 4, 1, stdin) == 1) {
    std::string text(size, '\0');
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    Print((*tokenizer)->Encode(text, /*add_bos=*/false, special != 0));
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace foretoken

int main(int argc, char** argv) { return argc == 2 ? foretoken::Run(argv[1]) : 2; }
