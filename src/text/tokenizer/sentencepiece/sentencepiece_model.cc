#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/text/utf8.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace foretoken {
namespace {

constexpr std::size_t kMaxPieceLength = 4096;

enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

/// One field of a serialised protocol buffer.
struct ProtocolField {
  std::uint32_t number = 0;
  std::uint32_t wire_type = 0;
  std::uint64_t value = 0;  // kVarint
  std::string_view bytes;   // kVarint: as encoded; the others: the content
};

/// Takes a number off the front of `message`; false where it is malformed.
bool TakeVarint(std::string_view* message, std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !message->empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(message->front());
    message->remove_prefix(1);
    *value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// Takes a field off the front of `message`; nothing where it is malformed.
std::optional<ProtocolField> TakeField(std::string_view* message) {
  std::uint64_t key = 0;
  if (!TakeVarint(message, &key) || key >> 32 != 0 || key >> 3 == 0) return std::nullopt;
  ProtocolField field;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.wire_type = static_cast<std::uint32_t>(key & 7);
  std::string_view rest = *message;
  std::uint64_t size = 0;
  switch (field.wire_type) {
    case kVarint:
      if (!TakeVarint(&rest, &field.value)) return std::nullopt;
      size = message->size() - rest.size();
      break;
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kDelimited:
      if (!TakeVarint(message, &size)) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  if (size > message->size()) return std::nullopt;
  field.bytes = message->substr(0, size);
  message->remove_prefix(size);
  return field;
}

bool Is(const ProtocolField& field, std::uint32_t number, WireType type) {
  return field.number == number && field.wire_type == type;
}

std::uint32_t LoadLittleEndian(const char* p) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<std::uint8_t>(p[i]);
  return value;
}

/// Checks that a walk through the double array of a normalisation map can leave neither the array
/// nor the replacement texts behind it: every unit's children lie inside, every leaf's text too.
bool IsSafeCharsMap(std::string_view map) {
  if (map.empty()) return true;
  if (map.size() < 4) return false;
  const std::size_t trie_size = LoadLittleEndian(map.data());
  if (trie_size % 4 != 0 || trie_size == 0 || trie_size >= map.size() - 4) return false;
  const std::string_view trie = map.substr(4, trie_size);
  const std::string_view texts = map.substr(4 + trie_size);
  if (texts.back() != '\0') return false;
  const std::size_t units = trie_size / 4;
  for (std::size_t i = 0; i < units; ++i) {
    const std::uint32_t unit = LoadLittleEndian(trie.data() + 4 * i);
    if (unit >> 31 != 0) {
      if ((unit & 0x7FFFFFFFU) >= texts.size()) return false;
    } else {
      const std::size_t offset = std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6);
      if (((i ^ offset) | 0xFF) >= units) return false;
    }
  }
  return true;
}

class ModelParser {
 public:
  ModelParser(std::string_view file, std::string_view where) : file_(file), where_(where) {}

  Result<SentencePieceModel> Parse() {
    FT_RETURN_IF_ERROR(EachField(file_, [this](const ProtocolField& field) -> Status {
      if (Is(field, 1, kDelimited)) return ParsePiece(field.bytes);
      if (Is(field, 2, kDelimited)) return ParseTrainer(field.bytes);
      if (Is(field, 3, kDelimited)) return ParseNormalizer(field.bytes);
      return {};
    }));
    // Both follow the pieces in every file that is whole.
    if (model_.pieces.empty() || !has_trainer_ || !has_normalizer_) return Malformed();
    return std::move(model_);
  }

 private:
  Error Malformed() const {
    return Invalid("{} is no SentencePiece model: it is truncated or damaged.", where_);
  }

  /// Calls `visit` with the fields of a message until one is refused.
  template <typename Visit>
  Status EachField(std::string_view message, const Visit& visit) const {
    while (!message.empty()) {
      const auto field = TakeField(&message);
      if (!field.has_value()) return Malformed();
      FT_RETURN_IF_ERROR(visit(*field));
    }
    return {};
  }

  Status ParsePiece(std::string_view message) {
    if (model_.pieces.size() == kMaxTokens) {
      return Invalid("{} has more than {} pieces.", where_, kMaxTokens);
    }
    SentencePiece piece;
    FT_RETURN_IF_ERROR(EachField(message, [&](const ProtocolField& field) -> Status {
      if (Is(field, 1, kDelimited)) {
        piece.spelling = field.bytes;
      } else if (Is(field, 2, kFixed32)) {
        std::memcpy(&piece.score, field.bytes.data(), sizeof(piece.score));
      } else if (Is(field, 3, kVarint)) {
        if (field.value < 1 || field.value > 6 || field.bytes.size() != 1) return Malformed();
        piece.type = static_cast<SentencePiece::Type>(field.value);
        piece.type_offset = field.bytes.data() - file_.data();
      }
      return {};
    }));
    if (piece.spelling.empty() || piece.spelling.size() > kMaxPieceLength ||
        piece.spelling.find('\0') != std::string::npos || !IsUtf8(piece.spelling) ||
        !std::isfinite(piece.score)) {
      return Invalid(
          "{}: piece {} must be 1 to {} bytes of valid UTF-8 without a NUL and have a finite "
          "score.",
          where_, model_.pieces.size(), kMaxPieceLength);
    }
    model_.pieces.push_back(std::move(piece));
    return {};
  }

  Status ParseTrainer(std::string_view message) {
    has_trainer_ = true;
    return EachField(message, [this](const ProtocolField& field) -> Status {
      if (Is(field, 3, kVarint) && field.value != 1 && field.value != 2) {
        return Invalid("{} has model_type {}; supported are 1 (unigram) and 2 (BPE).", where_,
                       field.value);
      }
      if (Is(field, 3, kVarint)) model_.unigram = field.value == 1;
      if (Is(field, 24, kVarint) && field.value != 0) {
        return Invalid("{} treats white space as a suffix, which is not supported.", where_);
      }
      return {};
    });
  }

  Status ParseNormalizer(std::string_view message) {
    has_normalizer_ = true;
    return EachField(message, [this](const ProtocolField& field) -> Status {
      if (Is(field, 2, kDelimited) && !IsSafeCharsMap(field.bytes)) {
        return Invalid("{} has a damaged normalisation map.", where_);
      }
      if (Is(field, 2, kDelimited)) model_.has_chars_map = !field.bytes.empty();
      if (Is(field, 4, kVarint)) model_.remove_extra_whitespaces = field.value != 0;
      if (Is(field, 3, kVarint)) model_.add_dummy_prefix = field.value != 0;
      return {};
    });
  }

  std::string_view file_;
  std::string_view where_;
  SentencePieceModel model_;
  bool has_trainer_ = false;
  bool has_normalizer_ = false;
};

}  // namespace

Result<SentencePieceModel> ParseSentencePieceModel(std::string_view file, std::string_view where) {
  return ModelParser(file, where).Parse();
}

std::string_view WithoutDummyPrefixSuffix() {
  // normalizer_spec (field 3) { add_dummy_prefix (field 3): false }; repeated messages merge.
  static constexpr char kSuffix[] = {0x1A, 0x02, 0x18, 0x00};
  return {kSuffix, sizeof(kSuffix)};
}

}  // namespace foretoken
