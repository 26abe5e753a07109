#include "text/tokenizer/bpe/bpe_tokenizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <algorithm>

#include "base/numbers/integers.h"
#include "base/text/utf8.h"
#include "text/tokenizer/bpe/byte_alphabet.h"
#include "text/tokenizer/bpe/character_bpe.h"
#include "text/tokenizer/files.h"

namespace foretoken {
namespace {

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

const icu::Normalizer2* NfcNormalizer() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  return U_SUCCESS(status) ? nfc : nullptr;
}

/// `text`, valid UTF-8, in Unicode's composed normal form.
std::string ToNfc(std::string_view text) {
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  UErrorCode status = U_ZERO_ERROR;
  NfcNormalizer()->normalizeUTF8(0, icu::StringPiece(text.data(), Int(text.size())), sink, nullptr,
                                 status);
  return U_SUCCESS(status) ? result : std::string(text);
}

std::vector<std::string_view> Views(const std::vector<std::string>& strings) {
  return {strings.begin(), strings.end()};
}

/// Byte-level BPE: normalisation, pre-tokenisation into words, merges. Bytes that are not UTF-8
/// pass through as words of their own.
class BpeTokenizer : public TokenizerBase {
 public:
  BpeTokenizer(Vocabulary vocabulary, std::vector<std::string> token_bytes,
               std::span<const BpeMerge> merges, BpeVocabularyBuilder::Settings settings)
      : TokenizerBase(std::move(vocabulary)),
        token_bytes_(std::move(token_bytes)),
        bpe_(Views(token_bytes_), merges, settings.bpe),
        pre_tokenizer_(std::move(settings.pre_tokenizer)),
        nfc_(settings.nfc) {}

  bool DropsLeadingSpace() const override { return false; }

 protected:
  void EncodeText(std::string_view text, const AddedToken* /*before*/, const AddedToken* /*after*/,
                  std::vector<Token>* tokens) const override {
    if (text.empty()) return;
    std::string copy;
    if (pre_tokenizer_.add_prefix_space() && text.front() != ' ') {
      copy = " ";
      text = copy.append(text);
    }
    while (!text.empty()) {
      const std::string_view valid = text.substr(0, ValidUtf8Prefix(text));
      std::string normal;
      if (nfc_ && !IsAscii(valid)) normal = ToNfc(valid);
      for (const std::string_view word : pre_tokenizer_.Split(normal.empty() ? valid : normal)) {
        bpe_.EncodeWord(word, tokens);
      }
      text.remove_prefix(valid.size());
      if (text.empty()) break;
      const std::size_t invalid = ReadUtf8(text).size;
      bpe_.EncodeWord(text.substr(0, invalid), tokens);
      text.remove_prefix(invalid);
    }
  }

 private:
  std::vector<std::string> token_bytes_;  // what the merges work on; `bpe_` points into it
  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  bool nfc_;
};

}  // namespace

Error BpeVocabularyBuilder::Bad(std::string_view what) const {
  return Invalid("{}: {}.", where_, what);
}

Status BpeVocabularyBuilder::AddName(std::string_view spelling, std::uint64_t id) {
  if (id >= kMaxTokens || id > names_.size() + kMaxIdGap) {
    return Bad(fmt::format("the token '{}' has id {}, far beyond the {} tokens before it", spelling,
                           id, names_.size()));
  }
  if (id >= names_.size()) names_.resize(id + 1);
  if (!names_[id].empty()) {
    return Bad(
        fmt::format("the tokens '{}' and '{}' have the same id {}", names_[id], spelling, id));
  }
  names_[id] = spelling;
  return {};
}

Status BpeVocabularyBuilder::AddToken(std::string_view spelling, std::uint64_t id) {
  FT_RETURN_IF_ERROR(AddName(spelling, id));
  if (spelling.empty()) {
    empty_.push_back(static_cast<Token>(id));
  } else if (!ids_.emplace(spelling, static_cast<Token>(id)).second) {
    return Bad(fmt::format("the token '{}' occurs twice", spelling));
  }
  return {};
}

Status BpeVocabularyBuilder::AddSpare(std::string_view spelling, std::uint64_t id) {
  FT_RETURN_IF_ERROR(AddName(spelling, id));
  spare_.push_back(static_cast<Token>(id));
  return {};
}

Status BpeVocabularyBuilder::AddAdded(AddedToken token) {
  if (token.content.empty() || token.content.size() > AddedTokens::kMaxLength) {
    return Bad(fmt::format("the added token with id {} must have 1 to {} bytes", token.id,
                           AddedTokens::kMaxLength));
  }
  const auto known = ids_.find(token.content);
  if (known == ids_.end()) {
    FT_RETURN_IF_ERROR(AddToken(token.content, static_cast<std::uint64_t>(token.id)));
  } else if (known->second != token.id) {
    // As Hugging Face's tokenizers do. What is left of the other id may be another token's.
    const auto other = static_cast<std::uint64_t>(token.id);
    if (other >= names_.size() || names_[other].empty()) {
      FT_RETURN_IF_ERROR(AddSpare(token.content, other));
    }
    token.id = known->second;
  }
  const auto [place, fresh] = added_index_.emplace(token.content, added_.size());
  if (fresh) {
    added_.push_back(std::move(token));
  } else {
    added_[place->second].special |= token.special;
  }
  return {};
}

std::optional<Token> BpeVocabularyBuilder::Find(std::string_view spelling) const {
  const auto found = ids_.find(std::string(spelling));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

Status BpeVocabularyBuilder::AddMerge(std::string_view left, std::string_view right) {
  const auto merged = Find(std::string(left).append(right));
  const auto l = Find(left);
  const auto r = Find(right);
  if (!merged.has_value() || !l.has_value() || !r.has_value()) {
    return Bad(fmt::format("merge {} ('{}' with '{}') needs a token that the vocabulary lacks",
                           merges_.size(), left, right));
  }
  merges_.push_back({*l, *r, *merged, static_cast<std::uint32_t>(merges_.size())});
  return {};
}

void BpeVocabularyBuilder::AddMergesOfAllCuts() {
  for (std::size_t id = 0; id < names_.size(); ++id) {
    const std::string& name = names_[id];
    const std::size_t first = merges_.size();
    for (std::size_t cut = 1; cut < name.size(); ++cut) {
      const auto left = Find(std::string_view(name).substr(0, cut));
      if (!left.has_value()) continue;
      const auto right = Find(std::string_view(name).substr(cut));
      if (!right.has_value()) continue;
      merges_.push_back({*left, *right, static_cast<Token>(id), static_cast<std::uint32_t>(id)});
    }
    // The order in which converters list them, so that the fingerprints are equal.
    std::sort(merges_.begin() + first, merges_.end(), [](const BpeMerge& a, const BpeMerge& b) {
      return std::pair(a.left, a.right) < std::pair(b.left, b.right);
    });
  }
}

/// Adds what the configuration knows of special tokens beyond the vocabulary's own file.
Status BpeVocabularyBuilder::AddConfigured() {
  for (const AddedToken& token : config_.added) FT_RETURN_IF_ERROR(AddAdded(token));
  for (const std::string& content : config_.special) {
    const auto id = Find(content);
    if (!id.has_value() || content.empty()) continue;
    FT_RETURN_IF_ERROR(AddAdded({.id = *id, .content = content, .special = true}));
  }
  return {};
}

std::optional<Token> BpeVocabularyBuilder::ChooseBos(const Settings& settings,
                                                     const AddedTokens& added) const {
  std::optional<std::string> spelling = settings.bos;
  if (config_.add_bos == false) spelling.reset();
  if (config_.add_bos == true && config_.bos.has_value()) spelling = config_.bos;
  const AddedToken* token = spelling.has_value() ? added.FindSpecial(*spelling) : nullptr;
  if (token == nullptr) return std::nullopt;
  return token->id;
}

Status BpeVocabularyBuilder::CheckBytes() const {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    if (!Find(name).has_value()) {
      return Bad(fmt::format("the vocabulary falls back to bytes and lacks the token '{}'", name));
    }
  }
  return {};
}

std::string BpeVocabularyBuilder::BytesOf(const std::string& name, const Settings& settings) const {
  if (settings.spaces.has_value()) return BytesOfCharacters(name);
  return added_index_.contains(name) ? name : BytesOfSpelling(name).value_or(name);
}

std::string BpeVocabularyBuilder::Fingerprint(const Vocabulary& vocabulary,
                                              const Settings& settings) const {
  Sha256 sha;
  if (settings.spaces.has_value()) {
    HashString("BPE of characters", &sha);
    HashString(settings.spaces->description(), &sha);
  } else {
    HashString("byte-level BPE", &sha);
    HashString(settings.pre_tokenizer.rules(), &sha);
    HashNumber(settings.nfc ? 1 : 0, &sha);
  }
  HashVocabulary(vocabulary, &sha);
  for (const BpeMerge& merge : merges_) {
    HashNumber(
        static_cast<std::uint64_t>(merge.left) << 32 | static_cast<std::uint32_t>(merge.right),
        &sha);
  }
  return sha.Hex();
}

Result<std::unique_ptr<Tokenizer>> BpeVocabularyBuilder::Build(Settings settings) && {
  if (names_.empty()) return Bad("the vocabulary is empty");
  if (settings.nfc && NfcNormalizer() == nullptr) {
    return Bad("NFC normalisation needs ICU's data, which could not be loaded");
  }
  if (settings.spaces.has_value()) FT_RETURN_IF_ERROR(CheckBytes());
  FT_RETURN_IF_ERROR(AddConfigured());

  Vocabulary vocabulary;
  std::ranges::sort(spare_);
  std::vector<std::string> token_bytes(names_.size());
  vocabulary.entries.resize(names_.size());
  for (std::size_t id = 0; id < names_.size(); ++id) {
    VocabularyEntry& entry = vocabulary.entries[id];
    const auto added = added_index_.find(names_[id]);
    entry.special = added != added_index_.end() && added_[added->second].special;
    if (!entry.special) entry.bytes = BytesOf(names_[id], settings);
    const bool spare = std::ranges::binary_search(spare_, static_cast<Token>(id));
    if (added == added_index_.end() && !spare) token_bytes[id] = entry.bytes;
    entry.name = std::move(names_[id]);
  }
  vocabulary.added = std::move(added_);
  vocabulary.spare = std::move(spare_);
  vocabulary.empty = std::move(empty_);
  vocabulary.notes = settings.notes;
  vocabulary.chat_templates = config_.chat_templates;
  vocabulary.marks = config_.marks;
  const AddedTokens added(vocabulary.added);
  vocabulary.eos = EndTokens(config_, added);
  vocabulary.bos = ChooseBos(settings, added);
  vocabulary.fingerprint = Fingerprint(vocabulary, settings);
  if (settings.spaces.has_value()) return MakeCharacterBpe(vocabulary, merges_, *settings.spaces);
  return std::unique_ptr<Tokenizer>(std::make_unique<BpeTokenizer>(
      std::move(vocabulary), std::move(token_bytes), merges_, std::move(settings)));
}

}  // namespace foretoken
