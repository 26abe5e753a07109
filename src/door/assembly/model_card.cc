#include "foretoken/model_card.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/exhaustion.h"
#include "base/files/read_file.h"
#include "core/model/families/family.h"
#include "core/model/families/read_config.h"
#include "core/model/open_checkpoint.h"
#include "core/weights/weight_type.h"
#include "foretoken/chat_format.h"
#include "foretoken/fill_marks.h"
#include "foretoken/tokenizer.h"
#include "text/tokenizer/tokenizer_config.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// Mixes of GGUF files that nothing is converted to here, by their numbers in them.
constexpr std::pair<std::int64_t, std::string_view> kOtherFileTypes[] = {
    {11, "Q3_K_S"}, {13, "Q3_K_L"}, {16, "Q5_K_S"}, {21, "Q2_K_S"}, {30, "IQ4_XS"}};

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return upper;
}

// By its number in GGUF files; empty where that is unknown.
std::string FileTypeName(std::int64_t number) {
  for (const WeightType& type : WeightTypes()) {
    if (type.file_type == number) return Upper(type.name);
  }
  for (const auto& [other, name] : kOtherFileTypes) {
    if (other == number) return std::string(name);
  }
  return {};
}

// What most of the weights are stored as.
std::string UsualFormat(const Checkpoint& checkpoint) {
  std::map<WeightFormat, std::int64_t> elements;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    elements[tensor.format] += tensor.elements();
  }
  if (elements.empty()) return {};
  return std::string(FormatName(
      std::ranges::max_element(elements, {}, [](const auto& sum) { return sum.second; })->first));
}

std::string StoredAs(const Checkpoint& checkpoint, const ModelSource& source) {
  if (!source.weights.empty()) return Upper(ParseWeightType(source.weights)->name);
  std::int64_t number = -1;
  if (checkpoint.gguf.has_value()) {
    (void)checkpoint.gguf->Integer("general.file_type", 0, 1 << 20, &number);
  }
  const std::string named = FileTypeName(number);
  return named.empty() ? UsualFormat(checkpoint) : named;
}

// What a GGUF file says besides its weights. Its tokenizer is not made: that takes long.
void ReadGguf(const GgufMetadata& metadata, ModelCard* card, std::string* with_tools) {
  (void)metadata.String("general.name", &card->name);
  (void)metadata.String("general.license", &card->license);
  (void)metadata.String("tokenizer.chat_template", &card->chat_template);
  (void)metadata.String(std::string("tokenizer.chat_template.") + ChatTemplates::kWithTools,
                        with_tools);
  std::int64_t pooling = 0;
  (void)metadata.Integer(card->architecture + ".pooling_type", 0, 1 << 20, &pooling);
  card->embeds = pooling > 0;
  std::optional<GgufArray> tokens;
  (void)metadata.Array("tokenizer.ggml.tokens", &tokens);
  if (!tokens.has_value() || tokens->type != GgufType::kString) return;
  card->fills_gaps = FindFillMarks(tokens->Strings()).complete();
}

Status ReadFolder(const fs::path& folder, ModelCard* card, std::string* with_tools) {
  FT_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(folder));
  card->fills_gaps = FindFillMarks(*tokenizer).complete();
  FT_ASSIGN_OR_RETURN(const TokenizerConfig config, ReadTokenizerConfig(folder));
  card->chat_template = config.chat_templates.Find(ChatTemplates::kUsual);
  *with_tools = config.chat_templates.Find(ChatTemplates::kWithTools);
  std::error_code ignored;
  card->embeds = fs::exists(folder / "1_Pooling", ignored);
  for (const char* file : {"LICENSE", "LICENSE.txt", "LICENSE.md"}) {
    constexpr std::size_t kMost = std::size_t{256} << 10;
    Result<std::string> text = ReadFile(folder / file, kMost);
    if (!text.ok()) continue;
    card->license = std::move(*text);
    break;
  }
  return {};
}

Result<ModelCard> ReadCard(const ModelSource& source) {
  if (source.path.empty()) {
    return InvalidInput("a model of random weights has no files that could say anything of it");
  }
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(source.path, source.weights));
  FT_ASSIGN_OR_RETURN(const ModelConfig config,
                      ReadModelConfig(checkpoint, source.context.value_or(0)));
  ModelCard card;
  std::string with_tools;  // The template of chats with tools; empty: the usual one.
  card.gguf = checkpoint.gguf.has_value();
  card.architecture = FamilyNamed(config.family)->gguf;
  card.stored_as = StoredAs(checkpoint, source);
  card.fingerprint = checkpoint.Fingerprint();
  card.parameters = config.parameters();
  card.max_context = config.max_positions;
  card.vocabulary = config.vocabulary;
  card.layers = config.layer_count();
  card.hidden = config.hidden;
  card.intermediate = config.layers.empty() ? 0 : config.layers.front().mlp.intermediate;
  card.heads = config.first_attention().heads;
  card.kv_heads = config.first_attention().kv_heads;
  if (card.gguf) {
    ReadGguf(*checkpoint.gguf, &card, &with_tools);
  } else {
    FT_RETURN_IF_ERROR(ReadFolder(source.path, &card, &with_tools));
  }
  if (!source.chat_template.empty()) {
    card.chat_template = source.chat_template;
    with_tools.clear();
  }
  const CallForm* const calls = FindCallForm(source.call_form);
  card.thinks = !FindChatFormat(card.chat_template, calls).reasoning.close.empty();
  if (with_tools.empty()) with_tools = card.chat_template;
  card.calls_tools = FindChatFormat(with_tools, calls).calls != nullptr;
  return card;
}

}  // namespace

Result<ModelCard> ReadModelCard(const ModelSource& source) {
  return OrExhausted([&] { return ReadCard(source); });
}

}  // namespace foretoken
