#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/tokenizer.h"

namespace foretoken {

/// Ordinary text of a rendered chat and the mark that follows it (nullptr after the last text).
/// The text is never searched for special tokens, so that what a user writes stays text.
struct ChatPart {
  std::string text;
  const AddedToken* mark = nullptr;
};

/// A chat template that Foretoken knows. Templates are programs (Jinja); these are recognised by
/// their marks and rendered by own code, to the same text.
class ChatTemplate {
 public:
  /// Nothing where `jinja` is neither ChatML nor Llama 3, or its marks are no special tokens.
  /// `tokens` must outlive the template.
  static std::optional<ChatTemplate> Recognise(std::string_view jinja, const AddedTokens& tokens);

  /// The chat, ending with the opening of the assistant's turn; without the beginning-of-sequence
  /// token.
  std::vector<ChatPart> Render(std::span<const ChatMessage> messages) const;

 private:
  /// Begins the turn of `role`, up to its content.
  void Open(const std::string& role, std::vector<ChatPart>* parts) const;
  void Turn(const std::string& role, std::string_view content, std::vector<ChatPart>* parts) const;
  /// The system message that the template puts first where `messages` does not begin with one, or
  /// with the template's preamble where it does; nothing where the template adds nothing.
  std::optional<std::string> SystemText(std::span<const ChatMessage> messages) const;

  const AddedToken* open_ = nullptr;        // <|im_start|>, <|start_header_id|>
  const AddedToken* header_end_ = nullptr;  // <|end_header_id|>; ChatML: none
  const AddedToken* close_ = nullptr;       // <|im_end|>, <|eot_id|>
  std::optional<std::string> default_system_;
  std::string system_preamble_;
  bool trims_ = false;  // white space around the contents is dropped
};

}  // namespace foretoken
