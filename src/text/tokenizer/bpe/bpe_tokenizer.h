#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/bpe/bpe.h"
#include "text/tokenizer/bpe/pretokenizer.h"
#include "text/tokenizer/bpe/space_rule.h"
#include "text/tokenizer/embedded_vocabulary.h"
#include "text/tokenizer/tokenizer_base.h"

namespace foretoken {

/// Collects a vocabulary, byte-level or of characters, from whatever file it stands in, checking it
/// on the way. `where` names the file in errors.
class BpeVocabularyBuilder {
 public:
  BpeVocabularyBuilder(std::string_view where, const TokenizerConfig& config)
      : where_(where), config_(config) {}

  /// Declares token `id`; of bytes, it is spelled in the byte alphabet. Ids and spellings must be
  /// new, but for the empty one, which stands for nothing.
  Status AddToken(std::string_view spelling, std::uint64_t id);
  /// Declares a token that no text is made of: another has its spelling.
  Status AddSpare(std::string_view spelling, std::uint64_t id);
  /// Declares an added token. One that the vocabulary has too has the id that it has there.
  Status AddAdded(AddedToken token);
  /// Appends a merge of two tokens by their spellings.
  Status AddMerge(std::string_view left, std::string_view right);
  /// Appends, for every token and every cut of it into two tokens, a merge ranked by the token's
  /// id: the rule of vocabularies that are lists of ranks.
  void AddMergesOfAllCuts();

  std::optional<Token> Find(std::string_view spelling) const;
  /// An error about the file.
  Error Bad(std::string_view what) const;

  struct Settings {
    PreTokenizer pre_tokenizer;
    bool nfc = false;
    Bpe::Options bpe;
    /// The spelling of the token that texts begin with, by the vocabulary's own file.
    std::optional<std::string> bos;
    /// How a vocabulary of characters marks spaces; of what is above only `bos` is for such a one.
    std::optional<SpaceRule> spaces;
    std::vector<std::string> notes;  ///< Vocabulary's.
  };
  /// The tokenizer, with the special tokens and chat template of the configuration.
  Result<std::unique_ptr<Tokenizer>> Build(Settings settings) &&;

 private:
  Status AddName(std::string_view spelling, std::uint64_t id);
  Status AddConfigured();
  /// Refuses a vocabulary of characters that lacks a byte.
  Status CheckBytes() const;
  std::string BytesOf(const std::string& name, const Settings& settings) const;
  std::string Fingerprint(const Vocabulary& vocabulary, const Settings& settings) const;
  std::optional<Token> ChooseBos(const Settings& settings, const AddedTokens& added) const;

  std::string where_;
  const TokenizerConfig& config_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Token> ids_;
  std::vector<Token> spare_;
  std::vector<Token> empty_;
  std::vector<AddedToken> added_;
  std::unordered_map<std::string, std::size_t> added_index_;
  std::vector<BpeMerge> merges_;
};

/// A tokenizer from the text of a tokenizer.json. Fields that Foretoken does not implement are
/// errors that name them.
Result<std::unique_ptr<Tokenizer>> ParseTokenizerJson(std::string_view text, std::string_view where,
                                                      const TokenizerConfig& config);

/// A tokenizer from vocab.json and merges.txt, of the kind that tokenizer_class names (GPT-2 or
/// Qwen2).
Result<std::unique_ptr<Tokenizer>> LoadVocabularyAndMerges(const std::filesystem::path& directory,
                                                           const TokenizerConfig& config);

/// Whether `text` begins like a list of ranks: a token in base64, a space and its rank.
bool LooksLikeTiktokenRanks(std::string_view text);

/// A Llama 3 tokenizer from its list of ranks.
Result<std::unique_ptr<Tokenizer>> ParseTiktokenRanks(std::string_view text, std::string_view where,
                                                      const TokenizerConfig& config);

/// A tokenizer from a vocabulary of the kind "gpt2", whose tokens, types and ids are checked.
Result<std::unique_ptr<Tokenizer>> LoadEmbeddedBpe(const EmbeddedVocabulary& vocabulary,
                                                   std::string_view where,
                                                   const TokenizerConfig& config);
/// A tokenizer from a vocabulary of the kind "gemma4", whose tokens, types and ids are checked.
Result<std::unique_ptr<Tokenizer>> LoadEmbeddedCharacterBpe(const EmbeddedVocabulary& vocabulary,
                                                            std::string_view where,
                                                            const TokenizerConfig& config);

}  // namespace foretoken
