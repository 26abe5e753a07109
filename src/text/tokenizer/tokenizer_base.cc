#include "text/tokenizer/tokenizer_base.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text/utf8.h"

namespace foretoken {

const VocabularyEntry& TokenizerBase::Entry(Token token) const {
  static const VocabularyEntry kNone;
  if (token < 0 || token >= vocabulary()) return kNone;
  return vocabulary_.entries[token];
}

TokenizerBase::TokenizerBase(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      added_(vocabulary_.added),
      chat_template_(InvalidInput("the model has no chat template")) {
  // Which of two with one spelling the model was trained to write is not known.
  const std::vector<Token> ends = eos();
  for (const Token token : vocabulary_.spare) {
    const auto same = [&](Token end) { return TokenName(end) == TokenName(token); };
    if (std::ranges::any_of(ends, same)) vocabulary_.eos.push_back(token);
  }
  auto& marks = vocabulary_.marks;
  if (bos().has_value()) marks.try_emplace("bos_token", TokenName(*bos()));
  if (!eos().empty()) marks.try_emplace("eos_token", TokenName(eos().front()));
  // A model whose template is broken still completes texts.
  UseOwnChatTemplates();
}

std::vector<std::string> TokenizerBase::notes() const {
  std::vector<std::string> notes = vocabulary_.notes;
  if (const auto& spare = vocabulary_.spare; !spare.empty()) {
    notes.push_back(
        fmt::format("tokens that are spelled as others are, so that no text is made of them: {} "
                    "('{}', token {}, first)",
                    spare.size(), Shortened(TokenName(spare.front())), spare.front()));
  }
  if (const auto& empty = vocabulary_.empty; !empty.empty()) {
    notes.push_back(fmt::format(
        "tokens that have no spelling, so that they stand for no text: {} (token {} first)",
        empty.size(), empty.front()));
  }
  return notes;
}

Result<ChatTemplate> TokenizerBase::ParseChatTemplate(std::string_view jinja) const {
  Result<ChatTemplate> parsed = ChatTemplate::Parse(jinja, vocabulary_.marks);
  if (parsed.ok()) return parsed;
  return Invalid("the chat template cannot be read: {}", parsed.error().message);
}

void TokenizerBase::UseOwnChatTemplates() {
  const ChatTemplates& own = vocabulary_.chat_templates;
  const std::string usual = own.Find(ChatTemplates::kUsual);
  const std::string with_tools = own.Find(ChatTemplates::kWithTools);
  if (!usual.empty()) {
    chat_template_ = ParseChatTemplate(usual);
  } else if (!own.by_name.empty()) {
    chat_template_ = InvalidInput("none of the model's chat templates is called 'default'");
  }
  if (!own.fault.empty()) chat_template_ = InvalidInput(own.fault);
  ChatFormat format = FindChatFormat(usual);
  if (!with_tools.empty()) {
    with_tools_ = ParseChatTemplate(with_tools);
    const ReasoningForm reasoning = format.reasoning;
    format = FindChatFormat(with_tools);
    if (format.reasoning.close.empty()) format.reasoning = reasoning;
  }
  UseChatFormat(format);
}

Status TokenizerBase::UseChatTemplate(std::string_view jinja) {
  FT_ASSIGN_OR_RETURN(chat_template_, ParseChatTemplate(jinja));
  with_tools_.reset();
  UseChatFormat(FindChatFormat(jinja));
  return {};
}

void TokenizerBase::UseChatFormat(const ChatFormat& format) {
  chat_format_ = format;
  for (Token token = 0; token < vocabulary(); ++token) {
    VocabularyEntry& entry = vocabulary_.entries[token];
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

Result<jinja::Text> TokenizerBase::Render(const ChatInput& chat) const {
  const Result<ChatTemplate>& used =
      with_tools_.has_value() && !chat.tools.empty() ? *with_tools_ : chat_template_;
  if (!used.ok()) return used.error();
  return used->Render(chat);
}

Result<std::string> TokenizerBase::ChatText(const ChatInput& chat) const {
  FT_ASSIGN_OR_RETURN(jinja::Text text, Render(chat));
  if (vocabulary_.bos.has_value()) {
    const std::string_view bos = TokenName(*vocabulary_.bos);
    if (text.bytes().starts_with(bos) && !text.IsInput(0)) return text.bytes().substr(bos.size());
  }
  return std::move(text).Release();
}

Result<std::vector<Token>> TokenizerBase::EncodeChat(const ChatInput& chat) const {
  FT_ASSIGN_OR_RETURN(const jinja::Text text, Render(chat));
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
  for (const char* content :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end_of_text|>", "<|endoftext|>",
        "</s>", "<|call|>", "<|return|>", "<end_of_turn>", "<turn|>"}) {
    add(added.FindSpecial(content));
  }
  // Where texts have several messages, this ends one of them.
  if (added.FindSpecial("<|return|>") == nullptr) add(added.FindSpecial("<|end|>"));
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
