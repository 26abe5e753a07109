#include "text/tokenizer/vocabulary_to_embed.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "base/numbers/integers.h"
#include "json/fields.h"
#include "text/tokenizer/bpe/bpe_family.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using Type = EmbeddedVocabulary::Type;

/// The parts of a folder's tokenizer, and what is made of them.
class FolderReader {
 public:
  FolderReader(const fs::path& folder, int outputs, std::span<const Token> ends)
      : folder_(folder), outputs_(outputs), ends_(ends) {}

  Result<VocabularyToEmbed> Read() {
    FT_ASSIGN_OR_RETURN(tokenizer_, LoadTokenizerFolder(folder_));
    FT_ASSIGN_OR_RETURN(config_, ReadTokenizerConfig(folder_));
    std::string model;
    if (FileExists(folder_ / "tokenizer.model")) {
      FT_ASSIGN_OR_RETURN(model, ReadTokenizerFile(folder_ / "tokenizer.model", kMaxTokenizerFile));
    }
    made_.chat_templates = config_.chat_templates;
    made_.add_bos = tokenizer_->bos().has_value();
    if (!model.empty() && !LooksLikeTiktokenRanks(model)) {
      FT_RETURN_IF_ERROR(ReadPieces(model));
    } else {
      FT_RETURN_IF_ERROR(ReadBytePairs());
    }
    return std::move(made_);
  }

 private:
  Error Cannot(std::string_view why) const {
    return Invalid("{}: its tokenizer cannot be written into a GGUF file: {}", folder_.string(),
                   why);
  }

  Status ReadPieces(const std::string& file) {
    const std::string where = (folder_ / "tokenizer.model").string();
    FT_ASSIGN_OR_RETURN(const SentencePieceModel model, ParseSentencePieceModel(file, where));
    if (model.unigram || model.has_chars_map) {
      return Cannot(
          "such files have SentencePiece models of merges only, without a normalisation map");
    }
    made_.model = "llama";
    made_.pre = "default";
    made_.add_space_prefix = model.add_dummy_prefix;
    made_.remove_extra_whitespaces = model.remove_extra_whitespaces;
    for (const SentencePiece& piece : model.pieces) {
      if (piece.type == SentencePiece::kUnknown) made_.unknown = std::ssize(made_.tokens);
      made_.tokens.push_back(piece.spelling);
      made_.scores.push_back(piece.score);
      made_.types.push_back(piece.type);
    }
    AddIds();
    made_.scores.resize(made_.tokens.size(), 0.0F);
    return CheckSame();
  }

  Status ReadBytePairs() {
    const fs::path json = folder_ / "tokenizer.json";
    const fs::path merges = folder_ / "merges.txt";
    if (FileExists(json)) {
      FT_RETURN_IF_ERROR(ReadTokenizerJson(json));
    } else if (FileExists(merges)) {
      FT_RETURN_IF_ERROR(ReadMergesFile(merges));
    } else {
      return Cannot("it has neither tokenizer.json, merges.txt nor a SentencePiece model");
    }
    for (const AddedToken& token : config_.added) {
      if (!token.special) texts_.push_back(token.content);
    }
    std::ranges::sort(texts_);
    if (made_.model == "gemma4") return CharacterBpe();
    made_.model = "gpt2";
    AddIds();
    // What cuts words has only a name in such files: it is the one by which nothing changes.
    for (const std::string_view family : BpeFamilies()) {
      made_.pre = family;
      if (CheckSame().ok()) return {};
    }
    return Cannot("how it cuts texts into words has no name there that is known");
  }

  Status CharacterBpe() {
    made_.pre = "default";
    made_.add_space_prefix = false;
    AddIds();
    made_.scores.assign(made_.tokens.size(), 0.0F);  // Which are there and rank nothing.
    if (CheckSame().ok()) return {};
    return Cannot("such files put no space before a text");
  }

  Status ReadTokenizerJson(const fs::path& path) {
    FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path, kMaxTokenizerFile));
    const Json json = Json::Parse(text);
    if (Flag(Field(Field(json, "model"), "byte_fallback"))) made_.model = "gemma4";
    for (const Json& merge : Field(Field(json, "model"), "merges")) {
      made_.merges.push_back(merge.is_string() ? Text(merge)
                                               : Text(merge[0]) + " " + Text(merge[1]));
    }
    for (const Json& token : Field(json, "added_tokens")) {
      if (!Flag(Field(token, "special"))) texts_.push_back(Text(Field(token, "content")));
    }
    return {};
  }

  Status ReadMergesFile(const fs::path& path) {
    FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path, kMaxTokenizerFile));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && !line.starts_with("#version")) made_.merges.push_back(line);
    }
    return {};
  }

  // The ids that the pieces are not, up to the model's outputs, and those that begin and end texts.
  void AddIds() {
    const auto count = std::max(outputs_, Size(tokenizer_->vocabulary()));
    for (std::size_t id = made_.tokens.size(); id < count; ++id) {
      const auto token = static_cast<Token>(id);
      const bool known = token < tokenizer_->vocabulary() && !tokenizer_->TokenName(token).empty();
      made_.tokens.push_back(known ? std::string(tokenizer_->TokenName(token))
                                   : fmt::format("[PAD{}]", id));
      made_.types.push_back(known ? TypeOf(token) : Type::kUnused);
    }
    made_.bos = tokenizer_->bos();
    std::vector<Token> ends(ends_.begin(), ends_.end());
    for (const Token token : tokenizer_->eos()) {
      if (std::ranges::find(ends, token) == ends.end()) ends.push_back(token);
    }
    const auto end = [&ends](std::size_t i) {
      return i < ends.size() ? std::optional(ends[i]) : std::nullopt;
    };
    made_.eos = end(0);
    made_.eot = end(1);
    made_.eom = end(2);
  }

  // The type of a token that no SentencePiece model has.
  Type TypeOf(Token token) const {
    if (tokenizer_->IsSpecial(token)) return Type::kControl;
    if (made_.model == "llama") return Type::kUserDefined;
    const std::string name(tokenizer_->TokenName(token));
    if (std::ranges::binary_search(texts_, name)) return Type::kUserDefined;
    const bool byte = made_.model == "gemma4" && FallbackByte(name).has_value();
    return byte ? Type::kByte : Type::kNormal;
  }

  // Whether the tokenizer that will be read back is the folder's.
  Status CheckSame() const {
    FT_ASSIGN_OR_RETURN(const auto again, TokenizerFromEmbedded(made_.View(), folder_.string()));
    if (again->fingerprint() == tokenizer_->fingerprint() && again->bos() == tokenizer_->bos()) {
      return {};
    }
    return Cannot("read back, it would not be the same");
  }

  const fs::path& folder_;
  const std::size_t outputs_;
  const std::span<const Token> ends_;
  std::unique_ptr<Tokenizer> tokenizer_;
  TokenizerConfig config_;
  std::vector<std::string> texts_;  // Added tokens that are not special, sorted.
  VocabularyToEmbed made_;
};

}  // namespace

EmbeddedVocabulary VocabularyToEmbed::View() const {
  return {.model = model,
          .pre = pre,
          .tokens = {tokens.begin(), tokens.end()},
          .scores = scores,
          .types = types,
          .merges = {merges.begin(), merges.end()},
          .bos = bos,
          .eos = eos,
          .eot = eot,
          .eom = eom,
          .unknown = unknown,
          .add_bos = add_bos,
          .add_space_prefix = add_space_prefix,
          .remove_extra_whitespaces = remove_extra_whitespaces,
          .chat_templates = chat_templates};
}

Result<VocabularyToEmbed> ReadVocabularyToEmbed(const fs::path& folder, int outputs,
                                                std::span<const Token> ends) {
  return FolderReader(folder, outputs, ends).Read();
}

}  // namespace foretoken
