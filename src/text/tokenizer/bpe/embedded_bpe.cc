#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "text/tokenizer/bpe/bpe_family.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"

namespace foretoken {
namespace {

// What llama.cpp takes where a file names none, as those of before April 2024 do.
constexpr std::string_view kUnnamedFamily = "default";

using Embedded = EmbeddedVocabulary;

Status AddTokens(const Embedded& vocabulary, BpeVocabularyBuilder* builder) {
  const UnwrittenTokens unwritten = FindUnwritten(vocabulary);
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view spelling = vocabulary.tokens[id];
    const int type = vocabulary.types[id];
    if (type == Embedded::kUnused) continue;  // Only keeps its id free.
    if (unwritten.Has(id)) {
      FT_RETURN_IF_ERROR(spelling.empty() ? builder->AddToken(spelling, id)
                                          : builder->AddSpare(spelling, id));
    } else if (type == Embedded::kNormal || type == Embedded::kByte) {
      FT_RETURN_IF_ERROR(builder->AddToken(spelling, id));
    } else {
      FT_RETURN_IF_ERROR(builder->AddAdded({.id = static_cast<Token>(id),
                                            .content = std::string(spelling),
                                            .special = type != Embedded::kUserDefined}));
    }
  }
  return {};
}

Status AddMerges(const Embedded& vocabulary, BpeVocabularyBuilder* builder) {
  if (vocabulary.merges.empty()) return builder->Bad("a tokenizer of this kind needs merges");
  for (const std::string_view merge : vocabulary.merges) {
    const std::size_t space = merge.find(' ');
    if (!IsUtf8(merge) || space == merge.npos || merge.find(' ', space + 1) != merge.npos) {
      return builder->Bad(
          fmt::format("the merge '{}' is not two tokens with a space between", Printable(merge)));
    }
    FT_RETURN_IF_ERROR(builder->AddMerge(merge.substr(0, space), merge.substr(space + 1)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadEmbeddedBpe(const Embedded& vocabulary,
                                                   std::string_view where,
                                                   const TokenizerConfig& config) {
  BpeVocabularyBuilder builder(where, config);
  const bool unnamed = vocabulary.pre.empty();
  const std::optional<BpeFamily> family = FindBpeFamily(unnamed ? kUnnamedFamily : vocabulary.pre);
  if (!family.has_value()) {
    return builder.Bad(fmt::format(
        "the file names the pre-tokenizer '{}', so that nothing says how text is cut into words; "
        "names that are known: {}",
        Printable(vocabulary.pre), BpeFamilyNames()));
  }
  FT_RETURN_IF_ERROR(AddTokens(vocabulary, &builder));
  FT_RETURN_IF_ERROR(AddMerges(vocabulary, &builder));
  BpeVocabularyBuilder::Settings settings;
  if (unnamed) {
    settings.notes.push_back(fmt::format(
        "the file names no pre-tokenizer (tokenizer.ggml.pre), so text is cut into words by the "
        "family '{}', as llama.cpp does it, and perhaps not as the model was trained: convert the "
        "model again",
        kUnnamedFamily));
  }
  FT_ASSIGN_OR_RETURN(settings.pre_tokenizer, PreTokenizer::FromJson(family->pre_tokenizer));
  settings.nfc = family->nfc;
  settings.bpe.whole_words_first = family->whole_words_first;
  if (family->adds_bos) settings.bos = config.bos;
  return std::move(builder).Build(std::move(settings));
}

Result<std::unique_ptr<Tokenizer>> LoadEmbeddedCharacterBpe(const Embedded& vocabulary,
                                                            std::string_view where,
                                                            const TokenizerConfig& config) {
  BpeVocabularyBuilder builder(where, config);
  FT_RETURN_IF_ERROR(AddTokens(vocabulary, &builder));
  FT_RETURN_IF_ERROR(AddMerges(vocabulary, &builder));
  BpeVocabularyBuilder::Settings settings;
  settings.spaces.emplace();
  settings.bos = config.bos;
  return std::move(builder).Build(std::move(settings));
}

}  // namespace foretoken
