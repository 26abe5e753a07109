#include "text/tokenizer/embedded_vocabulary.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/numbers/integers.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace foretoken {
namespace {

/// Checks what both kinds of vocabularies share.
class Checker {
 public:
  Checker(const EmbeddedVocabulary& vocabulary, std::string_view where)
      : vocabulary_(vocabulary), where_(where) {}

  Status Check() const {
    if (vocabulary_.tokens.empty()) return Bad("the file holds no tokenizer: there are no tokens");
    if (vocabulary_.tokens.size() > kMaxTokens || vocabulary_.merges.size() > kMaxTokens) {
      return Bad(fmt::format("there are {} tokens and {} merges; at most {} of each are accepted",
                             vocabulary_.tokens.size(), vocabulary_.merges.size(), kMaxTokens));
    }
    if (vocabulary_.types.size() != vocabulary_.tokens.size()) {
      return Bad(fmt::format("there are {} tokens but {} token types; each token needs one",
                             vocabulary_.tokens.size(), vocabulary_.types.size()));
    }
    FT_RETURN_IF_ERROR(CheckTokens());
    FT_RETURN_IF_ERROR(CheckId("beginning-of-sequence", vocabulary_.bos));
    FT_RETURN_IF_ERROR(CheckId("end-of-sequence", vocabulary_.eos));
    FT_RETURN_IF_ERROR(CheckId("end-of-turn", vocabulary_.eot));
    FT_RETURN_IF_ERROR(CheckId("end-of-message", vocabulary_.eom));
    for (const Token end : vocabulary_.ends) {
      FT_RETURN_IF_ERROR(CheckId("further end-of-sequence", end));
    }
    return CheckId("unknown", vocabulary_.unknown);
  }

 private:
  Error Bad(std::string_view what) const { return Invalid("{}: {}.", where_, what); }

  Status CheckTokens() const {
    std::size_t bytes = 0;
    for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
      const std::string_view token = vocabulary_.tokens[id];
      const int type = vocabulary_.types[id];
      if (!IsUtf8(token)) return Bad(fmt::format("token {} is not valid UTF-8", id));
      if (type < EmbeddedVocabulary::kNormal || type > EmbeddedVocabulary::kByte) {
        return Bad(fmt::format("token {}, '{}', has the type {}; types are 1 to 6", id,
                               Shortened(token), type));
      }
      const bool added =
          type == EmbeddedVocabulary::kControl || type == EmbeddedVocabulary::kUserDefined;
      if (added && token.size() > AddedTokens::kMaxLength) {
        return Bad(fmt::format(
            "token {} has {} bytes; at most {} are accepted in tokens that are recognised in texts",
            id, token.size(), AddedTokens::kMaxLength));
      }
      bytes += token.size();
    }
    if (bytes <= kMaxTokenizerFile) return {};
    return Bad(
        fmt::format("the tokens have {} bytes; at most {} are accepted", bytes, kMaxTokenizerFile));
  }

  Status CheckId(std::string_view name, const std::optional<Token>& id) const {
    const std::size_t tokens = vocabulary_.tokens.size();
    if (!id) return {};
    if (*id < 0 || Size(*id) >= tokens) {
      return Bad(fmt::format("the {} token has id {}; the file has {} tokens", name, *id, tokens));
    }
    if (!vocabulary_.tokens[*id].empty()) return {};
    return Bad(fmt::format("the {} token has id {}, whose spelling is empty", name, *id));
  }

  const EmbeddedVocabulary& vocabulary_;
  std::string_view where_;
};

/// What the files beside a vocabulary would say.
TokenizerConfig ConfigOf(const EmbeddedVocabulary& vocabulary) {
  TokenizerConfig config;
  const auto spelling = [&](const std::optional<Token>& id) -> std::optional<std::string> {
    if (!id) return std::nullopt;
    // Some files call the tokens that begin and end a text ordinary ones.
    config.special.emplace_back(vocabulary.tokens[*id]);
    return config.special.back();
  };
  config.bos = spelling(vocabulary.bos);
  config.eos = spelling(vocabulary.eos);
  if (config.bos) config.marks.emplace("bos_token", *config.bos);
  if (config.eos) config.marks.emplace("eos_token", *config.eos);
  if (vocabulary.unknown) {
    config.marks.emplace("unk_token", vocabulary.tokens[*vocabulary.unknown]);
  }
  for (const auto& id : {vocabulary.eot, vocabulary.eom}) {
    if (auto end = spelling(id)) config.ends.push_back(*std::move(end));
  }
  for (const Token id : vocabulary.ends) config.ends.push_back(*spelling(id));
  config.add_bos = vocabulary.add_bos;
  config.chat_templates = vocabulary.chat_templates;
  return config;
}

}  // namespace

bool UnwrittenTokens::Has(std::size_t id) const {
  const auto token = static_cast<Token>(id);
  return std::ranges::binary_search(spare, token) || std::ranges::binary_search(empty, token);
}

UnwrittenTokens FindUnwritten(const EmbeddedVocabulary& vocabulary) {
  const auto rank = [&](Token token) {
    const int type = vocabulary.types[token];
    for (const auto& named :
         {vocabulary.bos, vocabulary.eos, vocabulary.eot, vocabulary.eom, vocabulary.unknown}) {
      if (named == token) return 0;
    }
    if (type == EmbeddedVocabulary::kUnused) return 3;
    return type == EmbeddedVocabulary::kNormal ? 2 : 1;
  };
  UnwrittenTokens unwritten;
  std::unordered_map<std::string_view, Token> written;
  for (Token token = 0; token < std::ssize(vocabulary.tokens); ++token) {
    const std::string_view spelling = vocabulary.tokens[token];
    if (spelling.empty()) {
      unwritten.empty.push_back(token);
      continue;
    }
    const auto [known, fresh] = written.emplace(spelling, token);
    if (fresh) continue;
    Token spare = token;
    if (rank(token) < rank(known->second)) std::swap(spare, known->second);
    unwritten.spare.push_back(spare);
  }
  std::ranges::sort(unwritten.spare);
  return unwritten;
}

Result<std::unique_ptr<Tokenizer>> TokenizerFromEmbedded(const EmbeddedVocabulary& vocabulary,
                                                         std::string_view where) {
  FT_RETURN_IF_ERROR(Checker(vocabulary, where).Check());
  const TokenizerConfig config = ConfigOf(vocabulary);
  if (vocabulary.model == "llama") return LoadEmbeddedSentencePiece(vocabulary, where, config);
  if (vocabulary.model == "gpt2") return LoadEmbeddedBpe(vocabulary, where, config);
  if (vocabulary.model == "gemma4") return LoadEmbeddedCharacterBpe(vocabulary, where, config);
  return Invalid(
      "{}: the tokenizer is of the kind '{}'; supported are llama (SentencePiece), gpt2 "
      "(byte-level BPE) and gemma4 (BPE of characters).",
      where, Printable(vocabulary.model));
}

}  // namespace foretoken
