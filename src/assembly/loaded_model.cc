#include "assembly/loaded_model.h"

#include <fmt/core.h>

#include <utility>

#include "assembly/load_tokenizer.h"
#include "model/open_checkpoint.h"

namespace foretoken {
namespace {

constexpr std::uint64_t kSyntheticSeed = 20260301;

// `eos` are the end-of-sequence tokens of the model, besides those of the tokenizer.
ConstraintVocabulary VocabularyOf(const Tokenizer& tokenizer, std::vector<Token> eos) {
  std::vector<std::string_view> bytes;
  bytes.reserve(static_cast<std::size_t>(tokenizer.vocabulary()));
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    bytes.push_back(tokenizer.IsSpecial(token) ? std::string_view() : tokenizer.TokenBytes(token));
  }
  for (const Token token : tokenizer.eos()) eos.push_back(token);
  return {.trie = TokenTrie(bytes), .end_tokens = std::move(eos)};
}

// Adds what follows from the other parts: the model itself, and grammars over its vocabulary.
std::unique_ptr<LoadedModel> Complete(LoadedModel parts) {
  auto loaded = std::make_unique<LoadedModel>(std::move(parts));
  loaded->model = loaded->weights->MakeModel(loaded->backend.get());
  if (loaded->tokenizer != nullptr) {
    loaded->constraints = std::make_unique<ConstraintCompiler>(
        [tokenizer = loaded->tokenizer, eos = loaded->weights->config().eos] {
          return VocabularyOf(*tokenizer, eos);
        });
  }
  return loaded;
}

}  // namespace

Result<OpenedModel> OpenModel(const ModelSource& source) {
  OpenedModel opened;
  if (source.path.empty()) {
    FT_ASSIGN_OR_RETURN(opened.config, NamedShape(source.synthetic));
    opened.identity = ModelIdentity::Of("synthetic " + source.synthetic, "");
    return opened;
  }
  FT_ASSIGN_OR_RETURN(opened.checkpoint, OpenCheckpoint(source.path, source.weights));
  FT_ASSIGN_OR_RETURN(opened.config, ReadModelConfig(*opened.checkpoint));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(*opened.checkpoint));
  if (!source.chat_template.empty()) {
    FT_RETURN_IF_ERROR(tokenizer->UseChatTemplate(source.chat_template));
  }
  opened.tokenizer = std::move(tokenizer);
  if (opened.tokenizer->vocabulary() > opened.config.vocabulary) {
    return InvalidInput(fmt::format(
        "{}: the tokenizer has {} tokens but the model only {}: they do not belong together",
        source.path, opened.tokenizer->vocabulary(), opened.config.vocabulary));
  }
  FT_RETURN_IF_ERROR(CheckWeights(*opened.checkpoint, opened.config));
  opened.identity =
      ModelIdentity::Of(opened.checkpoint->Fingerprint(), opened.tokenizer->fingerprint());
  return opened;
}

std::unique_ptr<LoadedModel> LoadModel(const OpenedModel& opened, std::shared_ptr<Device> device,
                                       Precision precision, PackedWeights* packed,
                                       const LoadProgress& progress) {
  auto backend = device->MakeBackend(precision);
  std::shared_ptr<const ModelWeights> weights;
  if (packed != nullptr && packed->identity == opened.identity && packed->precision == precision) {
    weights = packed->weights.lock();
  }
  if (weights == nullptr) {
    weights = opened.checkpoint.has_value()
                  ? LoadWeights(*opened.checkpoint, opened.config, backend.get(), progress).value()
                  : SyntheticWeights(opened.config, kSyntheticSeed, backend.get());
  }
  if (packed != nullptr) *packed = {opened.identity, precision, weights};
  return Complete({.device = std::move(device),
                   .backend = std::move(backend),
                   .tokenizer = opened.tokenizer,
                   .weights = std::move(weights),
                   .identity = opened.identity});
}

Precision PrecisionFor(const OpenedModel& opened, std::optional<Precision> wanted) {
  if (wanted.has_value()) return *wanted;
  return opened.checkpoint.has_value() ? UsualPrecision(*opened.checkpoint) : Precision::kBF16;
}

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source,
                                               std::shared_ptr<Device> device,
                                               std::optional<Precision> precision,
                                               const LoadProgress& progress) {
  FT_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(source));
  return LoadModel(opened, std::move(device), PrecisionFor(opened, precision), nullptr, progress);
}

std::unique_ptr<LoadedModel> OnDevice(const LoadedModel& loaded, std::shared_ptr<Device> device) {
  auto backend = device->MakeBackend(loaded.backend->precision());
  return Complete({.device = std::move(device),
                   .backend = std::move(backend),
                   .tokenizer = loaded.tokenizer,
                   .weights = loaded.weights,
                   .identity = loaded.identity,
                   .draft_weights = loaded.draft_weights});
}

Status CheckPair(const LoadedModel& target, const OpenedModel& draft) {
  if (target.tokenizer != nullptr && draft.tokenizer != nullptr) {
    FT_RETURN_IF_ERROR(CheckSameVocabulary(*target.tokenizer, *draft.tokenizer));
  }
  const int target_size = target.model->config().vocabulary;
  const int draft_size = draft.config.vocabulary;
  if (target_size != draft_size) {
    return InvalidInput(
        fmt::format("the draft's output has {} entries and the target's {}: the pair must share "
                    "one vocabulary",
                    draft_size, target_size));
  }
  return {};
}

}  // namespace foretoken
