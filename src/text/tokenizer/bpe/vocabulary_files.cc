#include <openssl/evp.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/text/parse_number.h"
#include "json/json.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/bpe/byte_alphabet.h"
#include "text/tokenizer/files.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxRankedToken = 256;

/// Takes the next line off `text`, without its line end.
std::string_view TakeLine(std::string_view* text) {
  const std::size_t end = text->find('\n');
  std::string_view line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Status AddVocabularyJson(const std::filesystem::path& path, BpeVocabularyBuilder* builder) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path, kMaxTokenizerFile));
  const Json json = Json::Parse(text);
  std::vector<std::pair<std::uint64_t, std::string>> tokens;
  bool good = json.is_object();
  if (good) {
    for (const auto& [spelling, id] : json.items()) {
      good = good && id.is_number_unsigned();
      if (good) tokens.emplace_back(id.get<std::uint64_t>(), spelling);
    }
  }
  if (!good) {
    return Invalid("{} is not a JSON object from tokens to their ids.", path.string());
  }
  std::sort(tokens.begin(), tokens.end());
  for (const auto& [id, spelling] : tokens) FT_RETURN_IF_ERROR(builder->AddToken(spelling, id));
  return {};
}

Status AddMergesText(const std::filesystem::path& path, BpeVocabularyBuilder* builder) {
  FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path, kMaxTokenizerFile));
  std::string_view rest = text;
  if (rest.starts_with("#version")) TakeLine(&rest);
  while (!rest.empty()) {
    const std::string_view line = TakeLine(&rest);
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      return Invalid("{}: the line '{}' is not two tokens with a space between.", path.string(),
                     line);
    }
    FT_RETURN_IF_ERROR(builder->AddMerge(line.substr(0, space), line.substr(space + 1)));
  }
  return {};
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  constexpr std::string_view kBase64Digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string_view padding =
      text.substr(std::min(text.find_first_not_of(kBase64Digits), text.size()));
  if (text.empty() || text.size() % 4 != 0 || !std::string_view("==").ends_with(padding))
    return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                  reinterpret_cast<const unsigned char*>(text.data()), Int(text.size()));
  bytes.resize(bytes.size() - padding.size());
  return bytes;
}

// The bytes of a token and its rank.
std::optional<std::pair<std::string, std::uint64_t>> ParseRankLine(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto bytes = DecodeBase64(line.substr(0, space));
  std::uint64_t rank = 0;
  if (!bytes.has_value() || !ParseNumber(line.substr(space + 1), &rank)) return std::nullopt;
  return std::pair(*bytes, rank);
}

/// Llama 3's own special tokens, which follow its ranks and stand in no file.
std::vector<AddedToken> Llama3SpecialTokens(Token first) {
  std::vector<std::string> contents = {"<|begin_of_text|>",
                                       "<|end_of_text|>",
                                       "<|reserved_special_token_0|>",
                                       "<|reserved_special_token_1|>",
                                       "<|reserved_special_token_2|>",
                                       "<|reserved_special_token_3|>",
                                       "<|start_header_id|>",
                                       "<|end_header_id|>",
                                       "<|reserved_special_token_4|>",
                                       "<|eot_id|>"};
  for (int i = 5; contents.size() < 256; ++i) {
    contents.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  }
  std::vector<AddedToken> tokens;
  for (const std::string& content : contents) {
    tokens.push_back({.id = first++, .content = content, .special = true});
  }
  return tokens;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadVocabularyAndMerges(const std::filesystem::path& directory,
                                                           const TokenizerConfig& config) {
  const bool qwen2 = config.tokenizer_class.starts_with("Qwen2");
  if (!qwen2 && !config.tokenizer_class.starts_with("GPT2")) {
    return Invalid(
        "{} has vocab.json and merges.txt, for which tokenizer_class in tokenizer_config.json must "
        "be Qwen2Tokenizer or GPT2Tokenizer, not '{}'.",
        directory.string(), config.tokenizer_class);
  }
  BpeVocabularyBuilder builder(directory.string(), config);
  FT_RETURN_IF_ERROR(AddVocabularyJson(directory / "vocab.json", &builder));
  FT_RETURN_IF_ERROR(AddMergesText(directory / "merges.txt", &builder));
  const std::string_view pattern = qwen2 ? kQwen2Pattern : kGpt2Pattern;
  return std::move(builder).Build(
      {.pre_tokenizer = PreTokenizer::FromPattern(pattern), .nfc = qwen2});
}

bool LooksLikeTiktokenRanks(std::string_view text) {
  return ParseRankLine(TakeLine(&text)).has_value();
}

Result<std::unique_ptr<Tokenizer>> ParseTiktokenRanks(std::string_view text, std::string_view where,
                                                      const TokenizerConfig& config) {
  BpeVocabularyBuilder builder(where, config);
  Token count = 0;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (line.empty()) continue;
    const auto parsed = ParseRankLine(line);
    if (!parsed.has_value() || parsed->first.empty() || parsed->first.size() > kMaxRankedToken) {
      return Invalid(
          "{}: line {} is not a token of at most {} bytes in base64, a space and its rank.", where,
          count + 1, kMaxRankedToken);
    }
    FT_RETURN_IF_ERROR(builder.AddToken(SpellBytes(parsed->first), parsed->second));
    ++count;
  }
  builder.AddMergesOfAllCuts();
  if (config.added.empty()) {
    for (AddedToken& token : Llama3SpecialTokens(count)) {
      FT_RETURN_IF_ERROR(builder.AddAdded(std::move(token)));
    }
  }
  return std::move(builder).Build({.pre_tokenizer = PreTokenizer::FromPattern(kLlama3Pattern),
                                   .bpe = {.whole_words_first = true},
                                   .bos = "<|begin_of_text|>"});
}

}  // namespace foretoken
