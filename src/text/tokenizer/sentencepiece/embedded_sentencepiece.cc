#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/integers.h"
#include "base/text/text.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace foretoken {
namespace {

using Embedded = EmbeddedVocabulary;

// Fields of sentencepiece.ModelProto and of its parts.
enum ModelField : std::uint32_t {
  kPieces = 1,
  kTrainer = 2,
  kNormalizer = 3,
  kPieceSpelling = 1,
  kPieceScore = 2,
  kPieceType = 3,
  kTrainerModelType = 3,
  kTrainerByteFallback = 35,
  kNormalizerDummyPrefix = 3,
  kNormalizerExtraWhitespaces = 4,
};
constexpr std::uint64_t kBpe = 2;

void AppendVarint(std::uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void AppendNumber(ModelField field, std::uint64_t value, std::string* out) {
  AppendVarint(std::uint64_t{field} << 3, out);
  AppendVarint(value, out);
}

void AppendFloat(ModelField field, float value, std::string* out) {
  AppendVarint(std::uint64_t{field} << 3 | 5, out);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) *out += static_cast<char>(bits >> shift);
}

void AppendBytes(ModelField field, std::string_view bytes, std::string* out) {
  AppendVarint(std::uint64_t{field} << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

/// Writes the model file behind a vocabulary.
class ModelWriter {
 public:
  ModelWriter(const Embedded& vocabulary, std::string_view where,
              const std::vector<std::string>& special)
      : vocabulary_(vocabulary),
        where_(where),
        special_(special),
        unwritten_(FindUnwritten(vocabulary)) {}

  Result<std::string> Write() {
    if (vocabulary_.scores.size() != vocabulary_.tokens.size()) {
      return Bad(fmt::format("there are {} tokens but {} scores; each token needs one",
                             vocabulary_.tokens.size(), vocabulary_.scores.size()));
    }
    FT_ASSIGN_OR_RETURN(unknown_, FindUnknown());
    std::string file;
    bool byte_fallback = false;
    for (std::size_t id = 0; id < Pieces(vocabulary_); ++id) {
      const int type = TypeOf(id);
      byte_fallback = byte_fallback || type == Embedded::kByte;
      // Only the scores of ordinary pieces rank anything; model files give the others none.
      const bool scored = type == Embedded::kNormal || type == Embedded::kUnused;
      std::string piece;
      AppendBytes(kPieceSpelling, Spelling(id), &piece);
      AppendFloat(kPieceScore, scored ? vocabulary_.scores[id] : 0, &piece);
      AppendNumber(kPieceType, static_cast<std::uint64_t>(type), &piece);
      AppendBytes(kPieces, piece, &file);
    }
    std::string trainer;
    AppendNumber(kTrainerModelType, kBpe, &trainer);
    AppendNumber(kTrainerByteFallback, byte_fallback ? 1 : 0, &trainer);
    AppendBytes(kTrainer, trainer, &file);
    std::string normalizer;
    AppendNumber(kNormalizerDummyPrefix, vocabulary_.add_space_prefix ? 1 : 0, &normalizer);
    AppendNumber(kNormalizerExtraWhitespaces, vocabulary_.remove_extra_whitespaces ? 1 : 0,
                 &normalizer);
    AppendBytes(kNormalizer, normalizer, &file);
    return file;
  }

  std::vector<StandIn> stand_ins() const {
    std::vector<StandIn> all;
    for (const auto& tokens : {unwritten_.spare, unwritten_.empty}) {
      for (const Token token : tokens) {
        all.push_back({token, vocabulary_.tokens[token]});
      }
    }
    return all;
  }
  bool IsUnwritten(std::size_t id) const { return unwritten_.Has(id); }

  /// How many tokens the model file had. What follows them was added by a configuration, or fills
  /// the vocabulary up to the size of the model's output.
  static std::size_t Pieces(const Embedded& vocabulary) {
    std::size_t count = vocabulary.tokens.size();
    while (count > 0) {
      const int type = vocabulary.types[count - 1];
      const bool filler = IsFiller(vocabulary, count - 1);
      if (!filler && type != Embedded::kControl && type != Embedded::kUserDefined) break;
      --count;
    }
    return count;
  }

  /// Whether a token only keeps its id free.
  static bool IsFiller(const Embedded& vocabulary, std::size_t id) {
    return vocabulary.types[id] == Embedded::kUnused && vocabulary.tokens[id].starts_with("[PAD");
  }

 private:
  Error Bad(std::string_view what) const { return Invalid("{}: {}.", where_, what); }

  /// The library needs exactly one unknown piece, and some files call it a control token.
  Result<std::size_t> FindUnknown() const {
    if (vocabulary_.unknown) return Size(*vocabulary_.unknown);
    const auto typed = std::ranges::find(vocabulary_.types, int{Embedded::kUnknown});
    if (typed != vocabulary_.types.end()) {
      return Size(typed - vocabulary_.types.begin());
    }
    const auto spelled = std::ranges::find(vocabulary_.tokens, std::string_view("<unk>"));
    if (spelled != vocabulary_.tokens.end()) {
      return Size(spelled - vocabulary_.tokens.begin());
    }
    return Bad("no token stands for unknown text; SentencePiece needs one of type 2");
  }

  int TypeOf(std::size_t id) const {
    if (unwritten_.Has(id)) return Embedded::kUnused;
    if (id == unknown_) return Embedded::kUnknown;
    const int type = vocabulary_.types[id];
    if (type == Embedded::kUnknown) return Embedded::kControl;
    if (type != Embedded::kNormal) return type;
    // No training finds such a piece: who wrote the file could not tell that somebody defined it.
    if (LooksLikeMark(vocabulary_.tokens[id])) return Embedded::kUserDefined;
    const bool special = std::ranges::find(special_, vocabulary_.tokens[id]) != special_.end();
    return special ? Embedded::kControl : type;
  }

  /// Files write the spaces of user-defined pieces as spaces, and model files as marks.
  std::string Spelling(std::size_t id) const {
    // No text has the noncharacter, and the library wants each piece once.
    if (unwritten_.Has(id)) return fmt::format("\uFFFE{}", id);
    return ReplaceAll(vocabulary_.tokens[id], " ", kSpaceMark);
  }

  const Embedded& vocabulary_;
  std::string_view where_;
  const std::vector<std::string>& special_;
  UnwrittenTokens unwritten_;
  std::size_t unknown_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> LoadEmbeddedSentencePiece(const Embedded& vocabulary,
                                                             std::string_view where,
                                                             const TokenizerConfig& config) {
  ModelWriter writer(vocabulary, where, config.special);
  FT_ASSIGN_OR_RETURN(std::string file, writer.Write());
  TokenizerConfig with_added = config;
  for (std::size_t id = ModelWriter::Pieces(vocabulary); id < vocabulary.tokens.size(); ++id) {
    if (ModelWriter::IsFiller(vocabulary, id) || writer.IsUnwritten(id)) continue;
    with_added.added.push_back({.id = static_cast<Token>(id),
                                .content = std::string(vocabulary.tokens[id]),
                                .special = vocabulary.types[id] == Embedded::kControl});
  }
  return LoadSentencePiece(std::move(file), where, with_added, writer.stand_ins());
}

}  // namespace foretoken
