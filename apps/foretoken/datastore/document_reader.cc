#include "apps/foretoken/datastore/document_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "base/files/mapped_file.h"
#include "base/numbers/integers.h"
#include "base/threads/run_threads.h"
#include "json/json.h"

namespace foretoken {
namespace {

constexpr std::size_t kDocumentBytes = 4096;
constexpr std::size_t kPiecesPerThread = 64;
constexpr std::string_view kBlank = " \t\r\n";

using Documents = std::vector<std::vector<Token>>;

// Appends the texts of a field: a string, or an array of strings.
void CollectTexts(const Json& value, std::vector<std::string>* texts) {
  if (value.is_string()) texts->push_back(value.get<std::string>());
  if (!value.is_array()) return;
  for (const Json& item : value) {
    if (item.is_string()) texts->push_back(item.get<std::string>());
  }
}

Result<std::vector<Token>> ParseTokens(const Json& array, const Tokenizer& tokenizer,
                                       const std::string& where) {
  std::vector<Token> tokens;
  for (const Json& item : array) {
    if (!item.is_number_integer() || item.get<std::int64_t>() < 0 ||
        item.get<std::int64_t>() >= tokenizer.vocabulary()) {
      return Invalid("{}: 'tokens' must hold token ids below {}", where, tokenizer.vocabulary());
    }
    tokens.push_back(item.get<Token>());
  }
  return tokens;
}

// Where a text is cut: after the first line that ends beyond `least` bytes. A cut never parts a
// line.
std::vector<std::string_view> CutText(std::string_view text, std::size_t least) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (text.size() > least) end = std::min(text.find('\n', least), text.size() - 1) + 1;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

template <typename T>
Status TakeRawTokens(std::span<const std::byte> bytes, const std::string& path,
                     const TakeDocument& take) {
  if (bytes.size() % sizeof(T) != 0) {
    return Invalid("{}: {} bytes are no whole number of {}-byte tokens", path, bytes.size(),
                   sizeof(T));
  }
  std::vector<Token> tokens(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    T token;
    std::memcpy(&token, bytes.data() + i * sizeof(T), sizeof(T));
    tokens[i] = static_cast<Token>(token);
  }
  return take(std::move(tokens));
}

// The documents of one JSON line. `where` names file and line in errors.
Result<Documents> ParseJsonDocuments(std::string_view line, const Tokenizer& tokenizer,
                                     const std::string& where) {
  if (line.find_first_not_of(kBlank) == line.npos) return Documents();
  const Json object = Json::Parse(line);
  if (!object.is_object()) {
    return Invalid("{}: not a JSON object on one line", where);
  }
  Documents documents;
  if (const auto tokens = object.find("tokens"); tokens != object.end() && tokens->is_array()) {
    FT_ASSIGN_OR_RETURN(documents.emplace_back(), ParseTokens(*tokens, tokenizer, where));
    return documents;
  }
  std::vector<std::string> texts;
  for (const char* key : {"prompt", "turns", "question", "text", "answer"}) {
    if (const auto field = object.find(key); field != object.end()) CollectTexts(*field, &texts);
  }
  if (texts.empty()) {
    return Invalid(
        "{}: no 'tokens' and no text in 'prompt', 'turns', 'question', 'text' or 'answer'", where);
  }
  for (const std::string& text : texts) {
    documents.push_back(tokenizer.Encode(text, /*add_bos=*/false, /*parse_special=*/false));
  }
  return documents;
}

}  // namespace

Status ReadDocuments(const std::string& path, const Tokenizer& tokenizer, int threads,
                     const TakeDocument& take, const std::function<void(std::int64_t)>& advance) {
  FT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  if (path.ends_with(".u16")) return TakeRawTokens<std::uint16_t>(file->bytes(), path, take);
  if (path.ends_with(".u32")) return TakeRawTokens<std::uint32_t>(file->bytes(), path, take);

  const std::string_view content(reinterpret_cast<const char*>(file->bytes().data()),
                                 file->bytes().size());
  const std::size_t first = content.find_first_not_of(kBlank);
  const bool lines = first != content.npos && content[first] == '{';
  const std::vector<std::string_view> pieces = CutText(content, lines ? 0 : kDocumentBytes);
  const auto encode = [&](std::size_t i) -> Result<Documents> {
    if (lines) return ParseJsonDocuments(pieces[i], tokenizer, fmt::format("{}:{}", path, i + 1));
    return Documents{tokenizer.Encode(pieces[i], /*add_bos=*/false, /*parse_special=*/false)};
  };

  const std::size_t batch = kPiecesPerThread * Size(threads);
  for (std::size_t begin = 0; begin < pieces.size(); begin += batch) {
    const std::size_t count = std::min(batch, pieces.size() - begin);
    std::vector<std::optional<Result<Documents>>> encoded(count);
    std::atomic<std::size_t> next = 0;
    RunThreads(threads, [&](int) {
      for (std::size_t i = next++; i < count; i = next++) encoded[i] = encode(begin + i);
    });
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!encoded[i]->ok()) return encoded[i]->error();
      for (auto& document : **encoded[i]) FT_RETURN_IF_ERROR(take(std::move(document)));
      bytes += pieces[begin + i].size();
    }
    advance(bytes);
  }
  return {};
}

}  // namespace foretoken
