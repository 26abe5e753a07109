#include "text/tokenizer/tokenizer_config.h"

#include <fmt/core.h>

#include "base/files/read_text.h"
#include "base/numbers/integers.h"
#include "base/text/parse_number.h"
#include "json/fields.h"
#include "text/tokenizer/files.h"

namespace foretoken {
namespace {

/// The JSON object in `path`, or an empty object where there is no such file.
Result<Json> ReadObject(const std::filesystem::path& path) {
  if (!FileExists(path)) return Json::object();
  FT_ASSIGN_OR_RETURN(const std::string text, ReadTokenizerFile(path, kMaxConfigFile));
  Json json = Json::Parse(text);
  if (!json.is_object()) {
    return Invalid("{} is not a JSON object.", path.string());
  }
  return json;
}

/// A token is spelled as a string or as an object with `content`.
std::optional<std::string> Spelling(const Json& token) {
  const Json& spelling = token.is_object() ? Field(token, "content") : token;
  if (!spelling.is_string()) return std::nullopt;
  return spelling.get<std::string>();
}

void ReadSpecialTokens(const Json& object, TokenizerConfig* config) {
  const auto read = [&](const char* key, std::optional<std::string>* to) {
    const auto found = object.find(key);
    if (found == object.end()) return;
    std::optional<std::string> spelling = Spelling(*found);
    if (spelling.has_value()) config->special.push_back(*spelling);
    if (!spelling.value_or("").empty()) config->marks.try_emplace(key, *spelling);
    if (to != nullptr && !to->has_value()) *to = spelling.value_or("");
  };
  read("bos_token", &config->bos);
  read("eos_token", &config->eos);
  read("unk_token", nullptr);
  read("pad_token", nullptr);
  const Json& additional = Field(object, "additional_special_tokens");
  if (!additional.is_array()) return;
  for (const Json& token : additional) {
    if (auto spelling = Spelling(token)) config->special.push_back(*spelling);
  }
}

Status CheckAdded(const AddedToken& token, const std::filesystem::path& path) {
  if (token.id < 0 || Size(token.id) >= kMaxTokens) {
    return Invalid("{}: the added token '{}' has no id between 0 and {}.", path.string(),
                   token.content, kMaxTokens - 1);
  }
  if (token.content.empty() || token.content.size() > AddedTokens::kMaxLength) {
    return Invalid("{}: the added token with id {} must have 1 to {} bytes.", path.string(),
                   token.id, AddedTokens::kMaxLength);
  }
  return {};
}

Status ReadAddedTokens(const Json& config_json, const Json& added_json,
                       const std::filesystem::path& directory, TokenizerConfig* config) {
  if (const Json& decoder = Field(config_json, "added_tokens_decoder"); decoder.is_object()) {
    for (const auto& [id, token] : decoder.items()) {
      AddedToken added = {.content = Spelling(token).value_or(""),
                          .special = Flag(Field(token, "special")),
                          .lstrip = Flag(Field(token, "lstrip")),
                          .rstrip = Flag(Field(token, "rstrip"))};
      if (!ParseNumber(id, &added.id)) added.id = -1;  // Refused below.
      FT_RETURN_IF_ERROR(CheckAdded(added, directory / "tokenizer_config.json"));
      config->added.push_back(std::move(added));
    }
    return {};
  }
  for (const auto& [content, id] : added_json.items()) {
    AddedToken added = {.content = content};
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < kMaxTokens) added.id = id.get<Token>();
    FT_RETURN_IF_ERROR(CheckAdded(added, directory / "added_tokens.json"));
    config->added.push_back(std::move(added));
  }
  return {};
}

/// `chat_template` is the template itself or a list of named ones.
ChatTemplates TemplatesOfConfig(const Json& config_json) {
  ChatTemplates templates;
  const auto add = [&](const std::string& name, const std::string& jinja) {
    if (!jinja.empty()) templates.by_name.emplace(name, jinja);
  };
  const Json& found = Field(config_json, "chat_template");
  if (!found.is_array()) {
    add(ChatTemplates::kUsual, Text(found));
    return templates;
  }
  for (const Json& named : found) add(Text(Field(named, "name")), Text(Field(named, "template")));
  return templates;
}

/// Templates in files of their own; none where there are none.
Result<ChatTemplates> TemplatesOfFiles(const std::filesystem::path& directory) {
  ChatTemplates templates;
  const auto add = [&](const std::string& name, const std::filesystem::path& path) -> Status {
    FT_ASSIGN_OR_RETURN(std::string bytes, ReadTokenizerFile(path, kMaxConfigFile));
    Result<std::string> jinja = DecodeText(std::move(bytes));
    if (jinja.ok()) {
      templates.by_name[name] = *std::move(jinja);
    } else {
      templates.fault = fmt::format("{}: {}", path.string(), jinja.error().message);
    }
    return {};
  };
  if (const auto usual = directory / "chat_template.jinja"; FileExists(usual)) {
    FT_RETURN_IF_ERROR(add(ChatTemplates::kUsual, usual));
  }
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory / "additional_chat_templates", none)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".jinja") FT_RETURN_IF_ERROR(add(path.stem().string(), path));
  }
  return templates;
}

}  // namespace

Result<TokenizerConfig> ReadTokenizerConfig(const std::filesystem::path& directory) {
  FT_ASSIGN_OR_RETURN(const Json main, ReadObject(directory / "tokenizer_config.json"));
  FT_ASSIGN_OR_RETURN(const Json map, ReadObject(directory / "special_tokens_map.json"));
  FT_ASSIGN_OR_RETURN(const Json added, ReadObject(directory / "added_tokens.json"));

  TokenizerConfig config;
  config.tokenizer_class = Text(Field(main, "tokenizer_class"));
  if (const Json& add = Field(main, "add_bos_token"); add.is_boolean())
    config.add_bos = add.get<bool>();
  config.legacy = Flag(Field(main, "legacy"), true);
  ReadSpecialTokens(main, &config);
  ReadSpecialTokens(map, &config);
  FT_RETURN_IF_ERROR(ReadAddedTokens(main, added, directory, &config));
  FT_ASSIGN_OR_RETURN(config.chat_templates, TemplatesOfFiles(directory));
  if (config.chat_templates.by_name.empty()) config.chat_templates = TemplatesOfConfig(main);
  return config;
}

}  // namespace foretoken
