#include "door/assembly/gguf_tokenizer.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "text/tokenizer/embedded_vocabulary.h"
#include "text/tokenizer/files.h"

namespace foretoken {
namespace {

/// Reads the keys of a tokenizer.
class TokenizerKeys {
 public:
  explicit TokenizerKeys(const GgufMetadata& metadata) : metadata_(metadata) {}

  Result<EmbeddedVocabulary> Read() const {
    EmbeddedVocabulary vocabulary;
    if (metadata_.Find(Key("model")) == nullptr) {
      return InvalidInput("the file holds no tokenizer: the key tokenizer.ggml.model is missing");
    }
    FT_RETURN_IF_ERROR(metadata_.String(Key("model"), &vocabulary.model));
    FT_RETURN_IF_ERROR(metadata_.String(Key("pre"), &vocabulary.pre));
    vocabulary.chat_templates = Templates();
    FT_ASSIGN_OR_RETURN(vocabulary.tokens, Strings("tokens"));
    FT_ASSIGN_OR_RETURN(vocabulary.merges, Strings("merges"));
    FT_RETURN_IF_ERROR(ReadScores(&vocabulary.scores));
    FT_RETURN_IF_ERROR(ReadTypes(&vocabulary.types));
    FT_RETURN_IF_ERROR(Id("bos_token_id", &vocabulary.bos));
    FT_RETURN_IF_ERROR(Id("eos_token_id", &vocabulary.eos));
    FT_RETURN_IF_ERROR(Id("eot_token_id", &vocabulary.eot));
    FT_RETURN_IF_ERROR(Id("eom_token_id", &vocabulary.eom));
    FT_RETURN_IF_ERROR(ReadEnds(&vocabulary.ends));
    FT_RETURN_IF_ERROR(Id("unknown_token_id", &vocabulary.unknown));
    if (metadata_.Find(Key("add_bos_token")) != nullptr) vocabulary.add_bos.emplace();
    if (vocabulary.add_bos) {
      FT_RETURN_IF_ERROR(metadata_.Flag(Key("add_bos_token"), &*vocabulary.add_bos));
    }
    FT_RETURN_IF_ERROR(metadata_.Flag(Key("add_space_prefix"), &vocabulary.add_space_prefix));
    FT_RETURN_IF_ERROR(
        metadata_.Flag(Key("remove_extra_whitespaces"), &vocabulary.remove_extra_whitespaces));
    return vocabulary;
  }

 private:
  /// The templates of "tokenizer.chat_template" and, by name, "tokenizer.chat_template.NAME".
  ChatTemplates Templates() const {
    constexpr std::string_view kKey = "tokenizer.chat_template";
    ChatTemplates templates;
    for (const auto& [key, value] : metadata_.values()) {
      if (key != kKey && !key.starts_with(std::string(kKey) + '.')) continue;
      const std::string name(key == kKey ? ChatTemplates::kUsual : key.substr(kKey.size() + 1));
      const auto* jinja = std::get_if<std::string_view>(&value);
      if (jinja != nullptr) {
        templates.by_name[name] = *jinja;
      } else if (key == kKey) {
        templates.fault = fmt::format("the key {} must be a string", key);
      }
    }
    return templates;
  }

  static std::string Key(const char* name) { return std::string("tokenizer.ggml.") + name; }

  /// An array of at most as many elements as a vocabulary may have; nothing where there is none.
  Result<std::optional<GgufArray>> Array(const char* name) const {
    std::optional<GgufArray> array;
    FT_RETURN_IF_ERROR(metadata_.Array(Key(name), &array));
    if (array && array->count > kMaxTokens) {
      return Invalid("the key {} has {} elements; at most {} are accepted", Key(name), array->count,
                     kMaxTokens);
    }
    return array;
  }

  Result<std::vector<std::string_view>> Strings(const char* name) const {
    FT_ASSIGN_OR_RETURN(const std::optional<GgufArray> array, Array(name));
    if (!array) return std::vector<std::string_view>();
    if (array->type != GgufType::kString) {
      return Invalid("the key {} must be an array of strings", Key(name));
    }
    return array->Strings();
  }

  Result<std::vector<double>> Numbers(const char* name) const {
    FT_ASSIGN_OR_RETURN(const std::optional<GgufArray> array, Array(name));
    if (!array) return std::vector<double>();
    if (array->type == GgufType::kString || array->type == GgufType::kBool) {
      return Invalid("the key {} must be an array of numbers", Key(name));
    }
    return array->Numbers();
  }

  Status ReadScores(std::vector<float>* scores) const {
    FT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers("scores"));
    for (const double number : numbers) {
      if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
        return Invalid("the key {} must hold finite numbers, not {}", Key("scores"), number);
      }
      scores->push_back(static_cast<float>(number));
    }
    return {};
  }

  Status ReadTypes(std::vector<int>* types) const {
    FT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers("token_type"));
    for (const double number : numbers) {
      // What no type can be becomes 0, which is none.
      const bool small = number >= 1 && number <= 6 && number == std::floor(number);
      types->push_back(small ? static_cast<int>(number) : 0);
    }
    return {};
  }

  /// As Ollama writes what generation_config.json says.
  Status ReadEnds(std::vector<Token>* ends) const {
    FT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers("eos_token_ids"));
    for (const double number : numbers) {
      const bool id = number >= 0 && number < kMaxTokens && number == std::floor(number);
      if (!id) {
        return Invalid("the key {} must hold ids of tokens, not {}", Key("eos_token_ids"), number);
      }
      ends->push_back(static_cast<Token>(number));
    }
    return {};
  }

  Status Id(const char* name, std::optional<Token>* id) const {
    if (metadata_.Find(Key(name)) == nullptr) return {};
    std::int64_t value = 0;
    FT_RETURN_IF_ERROR(metadata_.Integer(Key(name), 0, kMaxTokens - 1, &value));
    *id = static_cast<Token>(value);
    return {};
  }

  const GgufMetadata& metadata_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> TokenizerFromGguf(const GgufMetadata& metadata,
                                                     const std::string& source) {
  Result<EmbeddedVocabulary> vocabulary = TokenizerKeys(metadata).Read();
  if (!vocabulary.ok()) {
    return Invalid("{}: {}.", source, vocabulary.error().message);
  }
  return TokenizerFromEmbedded(*vocabulary, source);
}

}  // namespace foretoken
