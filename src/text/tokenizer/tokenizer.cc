#include "text/tokenizer/tokenizer.h"

#include <algorithm>

#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/files.h"
#include "text/tokenizer/sentencepiece/sentencepiece_tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace foretoken {

Result<std::unique_ptr<Tokenizer>> LoadTokenizerFolder(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return Invalid("{} is not a readable directory.", directory.string());
  }
  FT_ASSIGN_OR_RETURN(const TokenizerConfig config, ReadTokenizerConfig(directory));

  // Where a folder has both, tokenizer.json was derived from the SentencePiece model.
  const std::filesystem::path model = directory / "tokenizer.model";
  const std::filesystem::path json = directory / "tokenizer.json";
  std::string model_bytes;
  if (FileExists(model)) {
    FT_ASSIGN_OR_RETURN(model_bytes, ReadTokenizerFile(model, kMaxTokenizerFile));
  }
  const bool ranks = LooksLikeTiktokenRanks(model_bytes);
  if (FileExists(model) && !ranks) {
    return LoadSentencePiece(std::move(model_bytes), model.string(), config);
  }
  if (FileExists(json)) {
    FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(json, kMaxTokenizerFile));
    return ParseTokenizerJson(text, json.string(), config);
  }
  if (FileExists(directory / "vocab.json") && FileExists(directory / "merges.txt")) {
    return LoadVocabularyAndMerges(directory, config);
  }
  if (ranks) return ParseTiktokenRanks(model_bytes, model.string(), config);
  return Invalid(
      "{} holds no tokenizer: it needs tokenizer.json (BPE), tokenizer.model (SentencePiece) or "
      "vocab.json with merges.txt.",
      directory.string());
}

namespace {

/// What `tokenizer` has beyond the first `common` ids may only be special or unused.
Status CheckExtraTokens(const Tokenizer& tokenizer, int common, std::string_view who,
                        std::string_view other) {
  for (Token id = common; id < tokenizer.vocabulary(); ++id) {
    if (!tokenizer.IsSpecial(id) && !tokenizer.TokenName(id).empty()) {
      return Invalid(
          "The vocabularies of target and draft differ first at token {}: the {} spells it '{}', "
          "the {} has only {} tokens.",
          id, who, tokenizer.TokenName(id), other, common);
    }
  }
  return {};
}

/// Whether a name is like <tool_call> or <|fim_prefix|>: some files say that such tokens are
/// special and others that they are text, in one and the same family.
bool IsBracketed(std::string_view name) {
  return name.size() > 2 && name.starts_with('<') && name.ends_with('>');
}

}  // namespace

Status CheckSameVocabulary(const Tokenizer& target, const Tokenizer& draft) {
  const int common = std::min(target.vocabulary(), draft.vocabulary());
  for (Token id = 0; id < common; ++id) {
    if (target.TokenName(id) != draft.TokenName(id)) {
      return Invalid(
          "The vocabularies of target and draft differ first at token {}: the target spells it "
          "'{}', the draft '{}'. The draft must use the target's tokenizer.",
          id, target.TokenName(id), draft.TokenName(id));
    }
    if (target.IsSpecial(id) != draft.IsSpecial(id) && !IsBracketed(target.TokenName(id))) {
      const bool target_special = target.IsSpecial(id);
      return Invalid(
          "The vocabularies of target and draft differ first at token {}, '{}': it is special for "
          "the {} and ordinary text for the {}.",
          id, target.TokenName(id), target_special ? "target" : "draft",
          target_special ? "draft" : "target");
    }
  }
  FT_RETURN_IF_ERROR(CheckExtraTokens(target, common, "target", "draft"));
  return CheckExtraTokens(draft, common, "draft", "target");
}

}  // namespace foretoken
