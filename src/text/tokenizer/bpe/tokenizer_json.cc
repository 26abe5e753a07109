#include <optional>

#include "json/fields.h"
#include "text/tokenizer/bpe/bpe_tokenizer.h"
#include "text/tokenizer/files.h"

namespace foretoken {
namespace {

/// Reads one tokenizer.json.
class TokenizerJsonParser {
 public:
  TokenizerJsonParser(std::string_view where, const TokenizerConfig& config)
      : builder_(where, config) {}

  Result<std::unique_ptr<Tokenizer>> Parse(const Json& json) {
    const Json& model = Field(json, "model");
    FT_RETURN_IF_ERROR(CheckModel(model));
    BpeVocabularyBuilder::Settings settings;
    if (Flag(Field(model, "byte_fallback"))) {
      FT_RETURN_IF_ERROR(ReadSpaces(json, &settings));
    } else {
      FT_RETURN_IF_ERROR(ReadWords(json, &settings));
    }
    FT_RETURN_IF_ERROR(AddVocabulary(Field(model, "vocab")));
    FT_RETURN_IF_ERROR(AddMerges(Field(model, "merges")));
    FT_RETURN_IF_ERROR(AddAddedTokens(Field(json, "added_tokens"), settings.spaces));
    settings.bpe.whole_words_first = Flag(Field(model, "ignore_merges"));
    const std::string unknown = Text(Field(model, "unk_token"));
    if (!unknown.empty()) {
      const auto id = builder_.Find(unknown);
      if (!id.has_value()) return Bad("model.unk_token is not in the vocabulary");
      settings.bpe.unknown = *id;
    }
    settings.bos = TemplateBos(Field(json, "post_processor"), /*may_nest=*/true);
    return std::move(builder_).Build(std::move(settings));
  }

 private:
  Error Bad(std::string_view what) const { return builder_.Bad(what); }

  Status ReadSpaces(const Json& json, BpeVocabularyBuilder::Settings* settings) const {
    const Result<SpaceRule> spaces = SpaceRuleFromJson(json);
    if (!spaces.ok()) return Bad(spaces.error().message);
    settings->spaces = *spaces;
    if (!Flag(Field(Field(json, "model"), "ignore_merges"))) return {};
    return Bad("model.ignore_merges is not supported beside model.byte_fallback");
  }

  Status ReadWords(const Json& json, BpeVocabularyBuilder::Settings* settings) const {
    Result<PreTokenizer> pre_tokenizer = PreTokenizer::FromJson(Field(json, "pre_tokenizer"));
    if (!pre_tokenizer.ok()) return Bad(pre_tokenizer.error().message);
    settings->pre_tokenizer = std::move(pre_tokenizer).value();
    FT_ASSIGN_OR_RETURN(settings->nfc, ParseNormalizer(Field(json, "normalizer")));
    return CheckDecoder(Field(json, "decoder"));
  }

  Status CheckModel(const Json& model) const {
    if (!model.is_object()) return Bad("there is no object 'model'");
    const Json& type = Field(model, "type");
    if (!type.is_null() && Text(type) != "BPE") {
      return Bad(fmt::format("model.type '{}' is not supported; it must be BPE", Text(type)));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!Text(Field(model, key)).empty()) return Bad(fmt::format("model.{} must be empty", key));
    }
    if (Flag(Field(model, "fuse_unk")) && !Flag(Field(model, "byte_fallback"))) {
      return Bad("model.fuse_unk is not supported in byte-level BPE");
    }
    const Json& dropout = Field(model, "dropout");
    if (dropout.is_number() && dropout.get<double>() != 0) return Bad("model.dropout must be null");
    return {};
  }

  /// Whether the text is brought to NFC.
  Result<bool> ParseNormalizer(const Json& normalizer) const {
    if (normalizer.is_null()) return false;
    const Json& sequence = Field(normalizer, "normalizers");
    const bool several = Text(Field(normalizer, "type")) == "Sequence" && sequence.is_array();
    const Json steps = several ? sequence : Json::array({normalizer});
    for (const Json& step : steps) {
      const std::string type = Text(Field(step, "type"));
      if (type != "NFC") {
        return Bad(fmt::format("normalizer '{}' is not supported; only NFC is", type));
      }
    }
    return !steps.empty();
  }

  Status CheckDecoder(const Json& decoder) const {
    if (decoder.is_null() || Text(Field(decoder, "type")) == "ByteLevel") return {};
    return Bad(fmt::format("decoder '{}' is not supported; only ByteLevel is",
                           Text(Field(decoder, "type"))));
  }

  Status AddVocabulary(const Json& vocabulary) {
    if (!vocabulary.is_object() || vocabulary.empty()) {
      return Bad("model.vocab is not an object of tokens");
    }
    // By id: a table grows with the ids, and JSON objects come in the order of their keys.
    std::vector<std::pair<std::uint64_t, const std::string*>> tokens;
    tokens.reserve(vocabulary.size());
    const auto& object = vocabulary.items();
    for (const auto& [spelling, id] : object) {
      if (!id.is_number_unsigned()) {
        return Bad(
            fmt::format("model.vocab gives '{}' an id that is not a number from 0", spelling));
      }
      tokens.emplace_back(id.get<std::uint64_t>(), &spelling);
    }
    std::sort(tokens.begin(), tokens.end());
    for (const auto& [id, spelling] : tokens) {
      FT_RETURN_IF_ERROR(builder_.AddToken(*spelling, id));
    }
    return {};
  }

  /// Merges are pairs or, in older files, strings with a space between the two.
  Status AddMerges(const Json& merges) {
    if (!merges.is_array()) return Bad("model.merges is not an array");
    for (const Json& merge : merges) {
      if (merge.is_string()) {
        const auto& text = merge.text();
        const std::size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
          return Bad(fmt::format("model.merges holds '{}', which is not two tokens", text));
        }
        const std::string_view view = text;
        FT_RETURN_IF_ERROR(builder_.AddMerge(view.substr(0, space), view.substr(space + 1)));
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        FT_RETURN_IF_ERROR(builder_.AddMerge(merge[0].text(), merge[1].text()));
      } else {
        return Bad("model.merges holds something that is neither a string nor a pair of strings");
      }
    }
    return {};
  }

  Status AddAddedTokens(const Json& tokens, const std::optional<SpaceRule>& spaces) {
    if (tokens.is_null()) return {};
    if (!tokens.is_array()) return Bad("added_tokens is not an array");
    for (const Json& json : tokens) {
      const Json& id = Field(json, "id");
      AddedToken token = {.content = Text(Field(json, "content")),
                          .special = Flag(Field(json, "special")),
                          .lstrip = Flag(Field(json, "lstrip")),
                          .rstrip = Flag(Field(json, "rstrip"))};
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= kMaxTokens) {
        return Bad(fmt::format("added_tokens gives '{}' no id between 0 and {}", token.content,
                               kMaxTokens - 1));
      }
      if (Flag(Field(json, "single_word"))) {
        return Bad(
            fmt::format("added_tokens: single_word of '{}' is not supported", token.content));
      }
      if (spaces && Flag(Field(json, "normalized")) && !spaces->Keeps(token.content)) {
        return Bad(fmt::format("added_tokens: normalized of '{}' is not supported", token.content));
      }
      token.id = id.get<Token>();
      FT_RETURN_IF_ERROR(builder_.AddAdded(std::move(token)));
    }
    return {};
  }

  /// The special token that the template of a post-processor puts before a text.
  static std::optional<std::string> TemplateBos(const Json& processor, bool may_nest) {
    const std::string type = Text(Field(processor, "type"));
    if (type == "Sequence" && may_nest) {
      for (const Json& step : Field(processor, "processors")) {
        if (auto bos = TemplateBos(step, /*may_nest=*/false)) return bos;
      }
    }
    const Json& single = Field(processor, "single");
    if (type != "TemplateProcessing" || !single.is_array() || single.empty()) return std::nullopt;
    const std::string content = Text(Field(Field(single[0], "SpecialToken"), "id"));
    if (content.empty()) return std::nullopt;
    return content;
  }

  BpeVocabularyBuilder builder_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> ParseTokenizerJson(std::string_view text, std::string_view where,
                                                      const TokenizerConfig& config) {
  const Json json = Json::Parse(text);
  if (!json.is_object()) {
    return Invalid("{} is not a JSON object: it is truncated or damaged.", where);
  }
  return TokenizerJsonParser(where, config).Parse(json);
}

}  // namespace foretoken
