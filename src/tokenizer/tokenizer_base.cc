#include "tokenizer/tokenizer_base.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace foretoken {

const VocabularyEntry& TokenizerBase::Entry(Token token) const {
  static const VocabularyEntry kNone;
  if (token < 0 || token >= vocabulary()) return kNone;
  return vocabulary_.entries[static_cast<std::size_t>(token)];
}

TokenizerBase::TokenizerBase(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      added_(vocabulary_.added),
      chat_template_(InvalidInput("the model has no chat template")) {
  auto& marks = vocabulary_.marks;
  if (bos().has_value()) marks.try_emplace("bos_token", TokenName(*bos()));
  if (!eos().empty()) marks.try_emplace("eos_token", TokenName(eos().front()));
  if (vocabulary_.chat_template.empty()) return;
  // A model whose template is broken still completes texts.
  const Status used = UseChatTemplate(vocabulary_.chat_template);
  if (!used.ok()) chat_template_ = used.error();
}

Status TokenizerBase::UseChatTemplate(std::string_view jinja) {
  Result<ChatTemplate> parsed = ChatTemplate::Parse(jinja, vocabulary_.marks);
  if (!parsed.ok()) {
    return InvalidInput(
        fmt::format("the chat template cannot be read: {}", parsed.error().message));
  }
  chat_template_ = std::move(parsed);
  UseChatFormat(FindChatFormat(jinja));
  return {};
}

void TokenizerBase::UseChatFormat(const ChatFormat& format) {
  chat_format_ = format;
  for (Token token = 0; token < vocabulary(); ++token) {
    VocabularyEntry& entry = vocabulary_.entries[static_cast<std::size_t>(token)];
    if (!entry.special) continue;
    const bool ends = std::ranges::count(vocabulary_.eos, token) > 0;
    entry.bytes = !ends && format.IsMark(entry.name) ? entry.name : std::string();
  }
}

void TokenizerBase::EncodeParts(const std::vector<TextPart>& parts,
                                std::vector<Token>* tokens) const {
  const AddedToken* before = nullptr;
  for (const TextPart& part : parts) {
    EncodeText(part.text, before, part.token, tokens);
    if (part.token != nullptr) tokens->push_back(part.token->id);
    before = part.token;
  }
}

std::vector<Token> TokenizerBase::Encode(std::string_view text, bool add_bos,
                                         bool parse_special) const {
  std::vector<Token> tokens;
  if (add_bos && vocabulary_.bos.has_value()) tokens.push_back(*vocabulary_.bos);
  EncodeParts(added_.Split(text, parse_special), &tokens);
  return tokens;
}

Result<std::string> TokenizerBase::ChatText(const ChatInput& chat) const {
  if (!chat_template_.ok()) return chat_template_.error();
  FT_ASSIGN_OR_RETURN(jinja::Text text, chat_template_->Render(chat));
  if (vocabulary_.bos.has_value()) {
    const std::string_view bos = TokenName(*vocabulary_.bos);
    if (text.bytes().starts_with(bos) && !text.IsInput(0)) return text.bytes().substr(bos.size());
  }
  return std::move(text).Release();
}

Result<std::vector<Token>> TokenizerBase::EncodeChat(const ChatInput& chat) const {
  if (!chat_template_.ok()) return chat_template_.error();
  FT_ASSIGN_OR_RETURN(const jinja::Text text, chat_template_->Render(chat));
  // A mark around a role is the template's, though the role is not.
  const auto is_mark = [&text](std::size_t begin, std::size_t end) {
    return !text.IsInput(begin) && !text.IsInput(end - 1);
  };
  std::vector<Token> tokens;
  EncodeParts(added_.Split(text.bytes(), is_mark), &tokens);
  const std::optional<Token> bos = vocabulary_.bos;
  if (bos.has_value() && (tokens.empty() || tokens.front() != *bos)) {
    tokens.insert(tokens.begin(), *bos);
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
  for (const char* content : {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
                              "<|endoftext|>", "</s>", "<|call|>", "<|return|>"}) {
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
