#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers/sha256.h"
#include "foretoken/chat_format.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/template/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace foretoken {

/// One token of a vocabulary; an id that no token has is an entry with an empty name.
struct VocabularyEntry {
  std::string name;   ///< As the vocabulary file spells it.
  std::string bytes;  ///< What it stands for; empty for special tokens that are no marks of chats.
  bool special = false;
};

/// A vocabulary as its loader found it, whatever the kind of its tokenizer.
struct Vocabulary {
  std::vector<VocabularyEntry> entries;
  std::vector<AddedToken> added;
  /// What a text begins with; nullopt where the configuration adds nothing.
  std::optional<Token> bos;
  std::vector<Token> eos;
  /// Ids whose spelling is another token's as well, ascending: no text is made of them.
  std::vector<Token> spare;
  /// Ids that the files give an empty spelling.
  std::vector<Token> empty;
  std::vector<std::string> notes;  ///< Tokenizer::notes that are the loader's own.
  ChatTemplates chat_templates;
  /// The template's variables for special tokens: bos_token, eos_token ...
  std::map<std::string, std::string> marks;
  std::string fingerprint;
};

/// What all tokenizers share: the vocabulary, added tokens and chats. A derived class encodes the
/// text between added tokens.
class TokenizerBase : public Tokenizer {
 public:
  explicit TokenizerBase(Vocabulary vocabulary);

  int vocabulary() const override { return vocabulary_.entries.size(); }
  std::vector<Token> Encode(std::string_view text, bool add_bos, bool parse_special) const override;
  std::string_view TokenBytes(Token token) const override { return Entry(token).bytes; }
  std::string_view TokenName(Token token) const override { return Entry(token).name; }
  bool IsSpecial(Token token) const override { return Entry(token).special; }
  std::optional<Token> bos() const override { return vocabulary_.bos; }
  std::vector<Token> eos() const override { return vocabulary_.eos; }
  std::vector<std::string> notes() const override;
  const std::string& fingerprint() const override { return vocabulary_.fingerprint; }
  Result<std::vector<Token>> EncodeChat(const ChatInput& chat) const override;
  Result<std::string> ChatText(const ChatInput& chat) const override;
  bool has_chat_template() const override { return chat_template_.ok(); }
  Status UseChatTemplate(std::string_view jinja) override;
  const ChatFormat& chat_format() const override { return chat_format_; }
  void UseChatFormat(const ChatFormat& format) override;

 protected:
  /// Appends the ids of `text`, which stands between the added tokens `before` and `after`
  /// (nullptr: the start and the end of the whole text) and may be empty.
  virtual void EncodeText(std::string_view text, const AddedToken* before, const AddedToken* after,
                          std::vector<Token>* tokens) const = 0;

 private:
  /// An empty one where no token has that id.
  const VocabularyEntry& Entry(Token token) const;
  /// Encodes what `parts` are.
  void EncodeParts(const std::vector<TextPart>& parts, std::vector<Token>* tokens) const;
  Result<ChatTemplate> ParseChatTemplate(std::string_view jinja) const;
  void UseOwnChatTemplates();
  /// By the template for such chats.
  Result<jinja::Text> Render(const ChatInput& chat) const;

  Vocabulary vocabulary_;
  AddedTokens added_;
  Result<ChatTemplate> chat_template_;
  std::optional<Result<ChatTemplate>> with_tools_;  // For chats with tools; none: the same.
  ChatFormat chat_format_;
};

/// The ids that end a text: `config`'s eos token and further ends, the ends of turns and texts
/// among the special tokens, and the vocabulary's `own`, if it has one.
std::vector<Token> EndTokens(const TokenizerConfig& config, const AddedTokens& added,
                             Token own = -1);

/// Feeds the tokens of `vocabulary` to `sha`, each so that no two vocabularies give the same bytes.
void HashVocabulary(const Vocabulary& vocabulary, Sha256* sha);
/// Feeds one number, or one string with its length.
void HashNumber(std::uint64_t number, Sha256* sha);
void HashString(std::string_view text, Sha256* sha);

}  // namespace foretoken
