#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <unordered_map>
#include <unordered_set>

#include "base/text/text.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/tokenizer_base.h"

// Exported by the library but in none of its public headers: the only way to keep its log lines
// off the user's terminal.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace foretoken {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

constexpr std::size_t kChunk = 1024;
constexpr int kNoLog = 4;  // above the library's FATAL

std::string WithSpaces(std::string_view spelling) { return ReplaceAll(spelling, kSpaceMark, " "); }

/// The first place from `from` (> 0) on where `text` may be cut.
std::size_t NextCut(std::string_view text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == ' ' && text[i - 1] != ' ' && !text.substr(0, i).ends_with(kSpaceMark)) return i;
  }
  return text.size();
}

/// Whether a text may be cut before any space that follows another character, and its parts encoded
/// alone: no piece reaches across and normalisation changes no space.
bool MayCutBeforeSpaces(const SentencePieceModel& model) {
  if (model.remove_extra_whitespaces || model.has_chars_map) return false;
  return std::none_of(model.pieces.begin(), model.pieces.end(), [](const SentencePiece& piece) {
    const std::string text = WithSpaces(piece.spelling);
    return NextCut(text, 1) < text.size();
  });
}

class SentencePieceTokenizer : public TokenizerBase {
 public:
  struct Options {
    bool add_dummy_prefix = true;
    bool legacy = true;
    Token space = -1;  // the piece of a lone space
    Token unknown = 0;
    bool may_cut = false;  // MayCutBeforeSpaces
  };

  SentencePieceTokenizer(Vocabulary vocabulary, std::unique_ptr<Processor> prefixing,
                         std::unique_ptr<Processor> plain, Options options)
      : TokenizerBase(std::move(vocabulary)),
        prefixing_(std::move(prefixing)),
        plain_(std::move(plain)),
        options_(options) {}

  bool DropsLeadingSpace() const override { return options_.add_dummy_prefix; }

 protected:
  // A text begins with a dummy prefix. The marks inside a model are pieces like others to the
  // library, so none follows them, and one precedes a mark that begins the text. Marks added later
  // cut the text in pieces, each of which begins anew (legacy), or only the first (newer Hugging
  // Face tokenizers).
  void EncodeText(std::string_view text, const AddedToken* before, const AddedToken* after,
                  std::vector<Token>* tokens) const override {
    if (text.empty()) {
      const bool leading_mark = before == nullptr && after != nullptr && after->in_model;
      if (leading_mark && options_.add_dummy_prefix && options_.space >= 0) {
        tokens->push_back(options_.space);
      }
      return;
    }
    const bool prefix = before == nullptr || (!before->in_model && options_.legacy);
    const Processor* processor = prefix ? prefixing_.get() : plain_.get();
    // The library's time per byte grows with the length of a text.
    while (!text.empty()) {
      const std::size_t size = options_.may_cut ? NextCut(text, kChunk) : text.size();
      EncodeWhole(*processor, text.substr(0, size), tokens);
      text.remove_prefix(size);
      processor = plain_.get();
    }
  }

 private:
  void EncodeWhole(const Processor& processor, std::string_view text,
                   std::vector<Token>* tokens) const {
    std::vector<int> ids;
    if (!processor.Encode({text.data(), text.size()}, &ids).ok()) ids.assign(1, options_.unknown);
    tokens->insert(tokens->end(), ids.begin(), ids.end());
  }

  std::unique_ptr<Processor> prefixing_;
  std::unique_ptr<Processor> plain_;  // without dummy prefix
  Options options_;
};

/// Loads `file` into a new processor; nothing where the library refuses it.
std::unique_ptr<Processor> NewProcessor(const std::string& file) {
  sentencepiece::logging::SetMinLogLevel(kNoLog);
  auto processor = std::make_unique<Processor>();
  try {
    if (!processor->LoadFromSerializedProto({file.data(), file.size()}).ok()) return nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
  return processor;
}

/// Assembles the vocabulary of a model and the tokens that the folder adds to it.
class VocabularyBuilder {
 public:
  VocabularyBuilder(const SentencePieceModel& model, const TokenizerConfig& config,
                    std::string_view where, std::span<const StandIn> stand_ins)
      : model_(model), config_(config), where_(where), stand_ins_(stand_ins) {
    special_.insert(config.special.begin(), config.special.end());
    for (const AddedToken& token : config.added) {
      if (token.special) special_.insert(token.content);
    }
  }

  Result<Vocabulary> Build() {
    for (const SentencePiece& piece : model_.pieces) AddPiece(piece);
    for (const AddedToken& token : config_.added) FT_RETURN_IF_ERROR(AddToken(token));
    for (const StandIn& token : stand_ins_) AddUnwritten(token);
    vocabulary_.chat_templates = config_.chat_templates;
    vocabulary_.marks = config_.marks;
    return std::move(vocabulary_);
  }

 private:
  void AddPiece(const SentencePiece& piece) {
    const auto id = static_cast<Token>(vocabulary_.entries.size());
    VocabularyEntry entry{piece.spelling, "", false};
    const bool user_defined = piece.type == SentencePiece::kUserDefined;
    entry.special =
        piece.type == SentencePiece::kControl || piece.type == SentencePiece::kUnknown ||
        (user_defined && (special_.contains(piece.spelling) || LooksLikeMark(piece.spelling)));
    if (piece.type == SentencePiece::kByte) {
      if (const auto byte = FallbackByte(piece.spelling)) entry.bytes = *byte;
    } else if (!entry.special) {
      entry.bytes = WithSpaces(piece.spelling);
    }
    // Longer control pieces than an added token may be exist in no real model.
    if (entry.special && piece.type != SentencePiece::kUnknown &&
        piece.spelling.size() <= AddedTokens::kMaxLength) {
      vocabulary_.added.push_back(
          {.id = id, .content = piece.spelling, .special = true, .in_model = user_defined});
    }
    ids_.emplace(piece.spelling, id);
    vocabulary_.entries.push_back(std::move(entry));
  }

  Status AddToken(const AddedToken& token) {
    const auto known = ids_.find(token.content);
    if (known != ids_.end() && known->second != token.id) {
      return Invalid("{} gives '{}' the id {}, the added tokens give it {}.", where_, token.content,
                     known->second, token.id);
    }
    const std::size_t index = token.id;
    if (index > vocabulary_.entries.size() + kMaxIdGap) {
      return Invalid("{} has {} pieces: the added token '{}' cannot have id {}.", where_,
                     model_.pieces.size(), token.content, token.id);
    }
    if (index >= vocabulary_.entries.size()) vocabulary_.entries.resize(index + 1);
    VocabularyEntry& entry = vocabulary_.entries[index];
    if (!entry.name.empty() && entry.name != token.content) {
      return Invalid("{} spells token {} '{}', the added tokens spell it '{}'.", where_, token.id,
                     entry.name, token.content);
    }
    const bool piece = known != ids_.end() && index < model_.pieces.size();
    // The library itself recognises its pieces that are ordinary text, and <unk> is never text.
    if (piece && (!token.special || entry.special)) return {};
    AddedToken added = token;
    added.special = token.special || special_.contains(token.content);
    entry.name = token.content;
    entry.special = added.special;
    entry.bytes = added.special ? "" : token.content;
    ids_.emplace(token.content, token.id);
    vocabulary_.added.push_back(std::move(added));
    return {};
  }

  // A model may still write it.
  void AddUnwritten(const StandIn& token) {
    const std::size_t index = token.id;
    if (index >= vocabulary_.entries.size()) vocabulary_.entries.resize(index + 1);
    VocabularyEntry& entry = vocabulary_.entries[index];
    entry = {};
    (token.spelling.empty() ? vocabulary_.empty : vocabulary_.spare).push_back(token.id);
    if (const auto same = ids_.find(std::string(token.spelling)); same != ids_.end()) {
      entry = vocabulary_.entries[same->second];
    }
  }

  const SentencePieceModel& model_;
  const TokenizerConfig& config_;
  std::string_view where_;
  std::span<const StandIn> stand_ins_;
  std::unordered_set<std::string> special_;
  std::unordered_map<std::string, Token> ids_;
  Vocabulary vocabulary_;
};

std::string Fingerprint(const SentencePieceModel& model, const Vocabulary& vocabulary) {
  Sha256 sha;
  HashString("sentencepiece", &sha);
  HashVocabulary(vocabulary, &sha);
  // The scores rank the merges.
  for (const SentencePiece& piece : model.pieces) {
    HashNumber(std::bit_cast<std::uint32_t>(piece.score), &sha);
    HashNumber(piece.type, &sha);
  }
  return sha.Hex();
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadSentencePiece(std::string file, std::string_view where,
                                                     const TokenizerConfig& config,
                                                     std::span<const StandIn> stand_ins) {
  FT_ASSIGN_OR_RETURN(SentencePieceModel model, ParseSentencePieceModel(file, where));
  FT_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                      VocabularyBuilder(model, config, where, stand_ins).Build());

  // The library would recognise user-defined pieces in any text; as control pieces it leaves those
  // that are special to us.
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    if (piece.type == SentencePiece::kUserDefined && vocabulary.entries[i].special) {
      file[piece.type_offset] = static_cast<char>(SentencePiece::kControl);
    }
  }
  std::unique_ptr<Processor> prefixing = NewProcessor(file);
  std::unique_ptr<Processor> plain = NewProcessor(file.append(WithoutDummyPrefixSuffix()));
  if (prefixing == nullptr || plain == nullptr) {
    return Invalid(
        "{} is refused by the SentencePiece library: it needs one unknown piece, no piece twice, "
        "and all 256 byte pieces where it has byte fallback.",
        where);
  }

  const AddedTokens added(vocabulary.added);
  if (config.add_bos.value_or(true)) {
    if (config.bos.has_value()) {
      if (const AddedToken* bos = added.Find(*config.bos)) vocabulary.bos = bos->id;
    } else if (prefixing->bos_id() >= 0) {
      vocabulary.bos = prefixing->bos_id();
    }
  }
  vocabulary.eos = EndTokens(config, added, prefixing->eos_id());
  vocabulary.fingerprint = Fingerprint(model, vocabulary);

  SentencePieceTokenizer::Options options = {.add_dummy_prefix = model.add_dummy_prefix,
                                             .legacy = config.legacy,
                                             .may_cut = MayCutBeforeSpaces(model)};
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].spelling == kSpaceMark) options.space = static_cast<Token>(i);
    // The library's own answer is -1 where the piece <unk> is another.
    if (model.pieces[i].type == SentencePiece::kUnknown) options.unknown = static_cast<Token>(i);
  }
  return std::unique_ptr<Tokenizer>(std::make_unique<SentencePieceTokenizer>(
      std::move(vocabulary), std::move(prefixing), std::move(plain), options));
}

}  // namespace foretoken
