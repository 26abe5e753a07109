#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/chat.h"
#include "foretoken/result.h"
#include "foretoken/types.h"

namespace foretoken {

struct ChatFormat;
struct ChatReading;

/// Text to tokens and back, for one vocabulary. Immutable after loading and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Loads the tokenizer of a model: of a Hugging Face folder's files, tokenizer.json (byte-level
  /// BPE) or tokenizer.model (SentencePiece) with the special tokens of tokenizer_config.json and
  /// the chat template of chat_template.jinja or there, or of a GGUF file's metadata.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::filesystem::path& model);

  virtual int vocabulary() const = 0;
  /// Ids of `text`. Special tokens written out in it are recognised only with `parse_special`;
  /// the beginning-of-sequence token is added where `add_bos` and the tokenizer has one.
  virtual std::vector<Token> Encode(std::string_view text, bool add_bos,
                                    bool parse_special) const = 0;
  /// The raw bytes one token stands for. May be part of a character. Empty for special tokens, but
  /// for the marks of the model's chat format: those are part of what it says.
  virtual std::string_view TokenBytes(Token token) const = 0;
  /// How the vocabulary file spells the token, for messages.
  virtual std::string_view TokenName(Token token) const = 0;
  virtual bool IsSpecial(Token token) const = 0;
  /// Whether the first token's leading space is dropped when a text is decoded from its start.
  virtual bool DropsLeadingSpace() const = 0;
  virtual std::optional<Token> bos() const = 0;
  virtual std::vector<Token> eos() const = 0;
  /// SHA-256 (hex) of vocabulary, merges and special tokens.
  virtual const std::string& fingerprint() const = 0;

  /// Tokens of a chat, ending with the opening of the assistant's turn, or with what that has said
  /// where the answer goes on with it. Special tokens that the
  /// template writes count; those that a message writes out are text. An error where there is no
  /// template, or it refuses the chat.
  virtual Result<std::vector<Token>> EncodeChat(const ChatInput& chat) const = 0;
  /// The same chat as text, its marks written out, without the beginning-of-sequence token that
  /// Encode adds.
  virtual Result<std::string> ChatText(const ChatInput& chat) const = 0;
  virtual bool has_chat_template() const = 0;
  /// Takes this Jinja template in place of the model's own, before anybody uses the tokenizer; an
  /// error where it is none.
  virtual Status UseChatTemplate(std::string_view jinja) = 0;
  /// How the model writes its answers, as the chat template tells.
  virtual const ChatFormat& chat_format() const = 0;
  /// Takes this format in its place, before anybody uses the tokenizer.
  virtual void UseChatFormat(const ChatFormat& format) = 0;

  /// What its files say that was passed over, in a sentence each.
  virtual std::vector<std::string> notes() const = 0;
};

/// How the answer to a chat is read whose prompt has these tokens; no tools may be called in it.
ChatReading ReadingAfter(const Tokenizer& tokenizer, std::span<const Token> prompt);

/// Turns tokens into text as they come, holding bytes back until they form whole UTF-8 characters.
class IncrementalDecoder {
 public:
  /// With `continues_text` the first token follows other text and keeps its leading space.
  explicit IncrementalDecoder(const Tokenizer* tokenizer, bool continues_text = false)
      : tokenizer_(tokenizer), at_start_(!continues_text) {}

  /// The text that became final with `token`; may be empty. Valid UTF-8: bytes that can never
  /// become a character come out as U+FFFD.
  std::string Push(Token token);
  /// What is still held back, as U+FFFD.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
  bool at_start_;
};

}  // namespace foretoken
