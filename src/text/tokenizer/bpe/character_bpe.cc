#include "text/tokenizer/bpe/character_bpe.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "base/text/utf8.h"
#include "text/tokenizer/sentencepiece/pieces.h"

namespace foretoken {
namespace {

class CharacterBpe : public TokenizerBase {
 public:
  CharacterBpe(const Vocabulary& vocabulary, std::span<const BpeMerge> merges, SpaceRule spaces)
      : TokenizerBase(vocabulary), bpe_({}, merges, {}), spaces_(spaces) {
    bytes_.fill(-1);
    for (Token token = 0; token < TokenizerBase::vocabulary(); ++token) {
      if (std::ranges::binary_search(vocabulary.spare, token)) continue;
      const std::string_view name = TokenName(token);
      if (const auto byte = FallbackByte(name)) bytes_[static_cast<unsigned char>(*byte)] = token;
      if (!name.empty() && ReadUtf8(name).size == name.size()) characters_.emplace(name, token);
    }
  }

  bool DropsLeadingSpace() const override { return spaces_.drops_leading; }

 protected:
  void EncodeText(std::string_view text, const AddedToken* before, const AddedToken* /*after*/,
                  std::vector<Token>* tokens) const override {
    const std::string marked = spaces_.Marked(text, before == nullptr);
    thread_local std::vector<Token> symbols;
    for (const std::string_view word : spaces_.Words(marked)) {
      symbols.clear();
      Split(word, &symbols);
      bpe_.Merge(&symbols);
      tokens->insert(tokens->end(), symbols.begin(), symbols.end());
    }
  }

 private:
  void Split(std::string_view word, std::vector<Token>* symbols) const {
    while (!word.empty()) {
      const std::string_view character = word.substr(0, ReadUtf8(word).size);
      word.remove_prefix(character.size());
      const auto found = characters_.find(std::string(character));
      if (found != characters_.end()) {
        symbols->push_back(found->second);
        continue;
      }
      for (const char byte : character) {
        symbols->push_back(bytes_[static_cast<unsigned char>(byte)]);
      }
    }
  }

  Bpe bpe_;
  SpaceRule spaces_;
  std::array<Token, 256> bytes_;
  std::unordered_map<std::string, Token> characters_;
};

}  // namespace

std::string BytesOfCharacters(std::string_view spelling) {
  if (const auto byte = FallbackByte(spelling)) return std::string(1, *byte);
  return ReplaceAll(spelling, kSpaceMark, " ");
}

std::unique_ptr<Tokenizer> MakeCharacterBpe(const Vocabulary& vocabulary,
                                            std::span<const BpeMerge> merges, SpaceRule spaces) {
  return std::make_unique<CharacterBpe>(vocabulary, merges, spaces);
}

}  // namespace foretoken
