#include "tokenizer/tokenizer_base.h"

#include <algorithm>

namespace foretoken {

const VocabularyEntry& TokenizerBase::Entry(Token token) const {
  static const VocabularyEntry kNone;
  if (token < 0 || token >= vocabulary()) return kNone;
  return vocabulary_.entries[static_cast<std::size_t>(token)];
}

const AddedToken* TokenizerBase::EncodePart(std::string_view text, bool parse_special,
                                            const AddedToken* before, const AddedToken* mark,
                                            std::vector<Token>* tokens) const {
  for (const TextPart& part : added_.Split(text, parse_special)) {
    const AddedToken* after = part.token != nullptr ? part.token : mark;
    EncodeText(part.text, before, after, tokens);
    if (after != nullptr) tokens->push_back(after->id);
    before = after;
  }
  return before;
}

std::vector<Token> TokenizerBase::Encode(std::string_view text, bool add_bos,
                                         bool parse_special) const {
  std::vector<Token> tokens;
  if (add_bos && vocabulary_.bos.has_value()) tokens.push_back(*vocabulary_.bos);
  EncodePart(text, parse_special, nullptr, nullptr, &tokens);
  return tokens;
}

Result<std::vector<ChatPart>> TokenizerBase::Render(std::span<const ChatMessage> messages) const {
  if (chat_template_.has_value()) return chat_template_->Render(messages);
  return InvalidInput(
      "The tokenizer has no chat template that Foretoken knows: it must be ChatML or Llama 3, "
      "with its marks among the special tokens.");
}

Result<std::string> TokenizerBase::ChatText(std::span<const ChatMessage> messages) const {
  FT_ASSIGN_OR_RETURN(const std::vector<ChatPart> parts, Render(messages));
  std::string text;
  for (const ChatPart& part : parts) {
    text += part.text;
    if (part.mark != nullptr) text += part.mark->content;
  }
  return text;
}

Result<std::vector<Token>> TokenizerBase::EncodeChat(std::span<const ChatMessage> messages) const {
  FT_ASSIGN_OR_RETURN(const std::vector<ChatPart> parts, Render(messages));
  std::vector<Token> tokens;
  if (vocabulary_.bos.has_value()) tokens.push_back(*vocabulary_.bos);
  const AddedToken* before = nullptr;
  for (const ChatPart& part : parts) {
    before = EncodePart(part.text, /*parse_special=*/false, before, part.mark, &tokens);
  }
  return tokens;
}

std::vector<Token> EndTokens(const TokenizerConfig& config, const AddedTokens& added, Token own) {
  std::vector<Token> ends;
  const auto add_id = [&ends](Token id) {
    if (id >= 0 && std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  const auto add = [&](const AddedToken* token) { add_id(token == nullptr ? -1 : token->id); };
  if (config.eos.has_value()) add(added.Find(*config.eos));
  for (const std::string& end : config.ends) add(added.Find(end));
  for (const char* content :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>"}) {
    add(added.FindSpecial(content));
  }
  add_id(own);
  return ends;
}

void HashNumber(std::uint64_t number, Sha256* sha) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift);
  sha->Update(bytes);
}

void HashString(std::string_view text, Sha256* sha) {
  HashNumber(text.size(), sha);
  sha->Update(text);
}

void HashVocabulary(const Vocabulary& vocabulary, Sha256* sha) {
  HashNumber(vocabulary.entries.size(), sha);
  for (const VocabularyEntry& entry : vocabulary.entries) {
    HashString(entry.name, sha);
    HashNumber(entry.special ? 1 : 0, sha);
  }
  HashNumber(vocabulary.added.size(), sha);
  for (const AddedToken& token : vocabulary.added) {
    HashString(token.content, sha);
    HashNumber(static_cast<std::uint64_t>(token.id), sha);
  }
}

}  // namespace foretoken
