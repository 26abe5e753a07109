#include "door/assembly/loaded_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/numbers/sha256.h"
#include "core/model/config/named_shapes.h"
#include "core/model/drafters/learned_draft.h"
#include "core/model/families/read_config.h"
#include "core/model/open_checkpoint.h"
#include "core/model/self/self_draft.h"
#include "core/model/self/trained_exit.h"
#include "door/assembly/load_tokenizer.h"
#include "foretoken/chat_format.h"

namespace foretoken {
namespace {

constexpr std::uint64_t kSyntheticSeed = 20260301;

// `eos` are the end-of-sequence tokens of the model, besides those of the tokenizer.
ConstraintVocabulary VocabularyOf(const Tokenizer& tokenizer, std::vector<Token> eos) {
  std::vector<std::string_view> bytes;
  bytes.reserve(tokenizer.vocabulary());
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    bytes.push_back(tokenizer.TokenBytes(token));
  }
  for (const Token token : tokenizer.eos()) eos.push_back(token);
  return {.trie = TokenTrie(bytes), .end_tokens = std::move(eos)};
}

// The fingerprint has the context too where the model would rotate otherwise without it: it then
// computes what another model does.
Result<std::string> FingerprintOf(const Checkpoint& checkpoint, const ModelConfig& config) {
  std::string fingerprint = checkpoint.Fingerprint();
  FT_ASSIGN_OR_RETURN(const ModelConfig whole, ReadModelConfig(checkpoint));
  if (whole.ropes == config.ropes) return fingerprint;
  return Sha256Hex(fmt::format("{} of {} positions", fingerprint, config.max_positions));
}

// What could not be opened as a model may be a drafter that cannot run by itself.
Status RefuseDrafter(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  const Result<Checkpoint> folder = Checkpoint::Open(path);
  if (!folder.ok() || !IsLearnedDraft(*folder)) return {};
  return Invalid(
      "{} is no model but a drafter that reads the states of one: name its target with -m and it "
      "with -md",
      path);
}

// Refuses a name that two have or that could not be told from a model's in "MODEL:NAME".
Status CheckNames(std::span<const AdapterSource> sources) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string& name = sources[i].name;
    if (name.empty() || name.find_first_of(":=") != std::string::npos) {
      return Invalid("an adapter cannot be called '{}': give it a name without ':' and '='", name);
    }
    if (std::ranges::count(sources.first(i), name, &AdapterSource::name) == 0) continue;
    return Invalid("two adapters are called {}: give one of them another name", name);
  }
  return {};
}

Result<std::vector<Adapter>> ReadAdapters(std::span<const AdapterSource> sources,
                                          const ModelConfig& config) {
  FT_RETURN_IF_ERROR(CheckNames(sources));
  std::vector<Adapter> adapters;
  for (const AdapterSource& source : sources) {
    FT_ASSIGN_OR_RETURN(Adapter adapter, ReadAdapter(source.path, config));
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

// Adds what follows from the other parts: the model itself, and grammars over its vocabulary.
std::unique_ptr<LoadedModel> Complete(LoadedModel parts) {
  auto loaded = std::make_unique<LoadedModel>(std::move(parts));
  loaded->model = loaded->weights->MakeModel(loaded->backend.get(), loaded->adapters);
  if (loaded->translation != nullptr) {
    loaded->model = Translate(std::move(loaded->model), loaded->translation);
  }
  if (loaded->tokenizer != nullptr) {
    loaded->constraints = std::make_unique<ConstraintCompiler>(
        [tokenizer = loaded->tokenizer, eos = loaded->model->config().eos] {
          return VocabularyOf(*tokenizer, eos);
        });
  }
  return loaded;
}

Result<OpenedModel> OpenParts(const ModelSource& source) {
  OpenedModel opened;
  if (source.context && *source.context < 2) {
    return Invalid(
        "a model's context of {} tokens must be at least 2, or left out for all that it was made "
        "for",
        *source.context);
  }
  opened.experts = source.experts;
  opened.draft_vocabulary = source.draft_vocabulary;
  if (source.path.empty()) {
    if (source.experts == ExpertsPlace::kFile) {
      return InvalidInput("experts of random weights lie in no file that they could stay in");
    }
    FT_ASSIGN_OR_RETURN(opened.config, NamedShape(source.synthetic));
    int& positions = opened.config.max_positions;
    positions = std::min(positions, source.context.value_or(positions));
    opened.identity = ModelIdentity::Of("synthetic " + source.synthetic, "");
    opened.weights_of = opened.identity;
    return opened;
  }
  FT_ASSIGN_OR_RETURN(opened.checkpoint, OpenCheckpoint(source.path, source.weights));
  FT_ASSIGN_OR_RETURN(opened.config,
                      ReadModelConfig(*opened.checkpoint, source.context.value_or(0)));
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(*opened.checkpoint));
  if (!source.chat_template.empty()) {
    FT_RETURN_IF_ERROR(tokenizer->UseChatTemplate(source.chat_template));
  }
  if (!source.call_form.empty()) {
    const CallForm* form = FindCallForm(source.call_form);
    if (form == nullptr) {
      return Invalid("there is no form of calls '{}'; there are {}", source.call_form,
                     fmt::join(CallFormNames(), ", "));
    }
    tokenizer->UseChatFormat(WithCalls(tokenizer->chat_format(), *form));
  }
  opened.tokenizer = std::move(tokenizer);
  if (opened.tokenizer->vocabulary() > opened.config.vocabulary) {
    return Invalid(
        "{}: the tokenizer has {} tokens but the model only {}: they do not belong together",
        source.path, opened.tokenizer->vocabulary(), opened.config.vocabulary);
  }
  FT_RETURN_IF_ERROR(CheckWeights(*opened.checkpoint, opened.config, source.experts));
  FT_ASSIGN_OR_RETURN(const std::string fingerprint,
                      FingerprintOf(*opened.checkpoint, opened.config));
  opened.identity = ModelIdentity::Of(fingerprint, opened.tokenizer->fingerprint());
  opened.weights_of = opened.identity;
  return opened;
}

// The model with a trained exit behind its first layers, and nothing behind that.
Result<OpenedModel> EndEarly(std::string_view folder, OpenedModel model) {
  if (!model.checkpoint.has_value()) {
    return Invalid("{}: a model of random weights has no trained exit", folder);
  }
  FT_ASSIGN_OR_RETURN(const int exit, UseTrainedExit(folder, model.config, &*model.checkpoint));
  FT_ASSIGN_OR_RETURN(const SkippedSublayers skipped,
                      SkippedByExit(exit + 1, model.config.layer_count()));
  FT_ASSIGN_OR_RETURN(const std::string fingerprint,
                      FingerprintOf(*model.checkpoint, model.config));
  FT_ASSIGN_OR_RETURN(model.config, Without(skipped, model.config));
  FT_RETURN_IF_ERROR(CheckWeights(*model.checkpoint, model.config, model.experts));
  model.identity = Changed(ModelIdentity::Of(fingerprint, model.tokenizer->fingerprint()),
                           fmt::format("without {}", skipped.ToText()));
  model.weights_of = {};
  return model;
}

// The model as a draft of its own weights.
Result<OpenedModel> LeaveOut(std::string_view own, OpenedModel model) {
  const std::string fingerprint = FingerprintText(model.identity.model);
  FT_ASSIGN_OR_RETURN(const SkippedSublayers skipped,
                      ReadSelfDraft(own, model.config.layer_count(), fingerprint));
  Result<ModelConfig> part = Without(skipped, model.config);
  if (!part.ok()) return Invalid("self:{}: {}", own, part.error().message);
  model.config = std::move(part).value();
  model.identity = Changed(model.identity, fmt::format("without {}", skipped.ToText()));
  return model;
}

}  // namespace

std::string FingerprintText(const std::array<char, 64>& fingerprint) {
  return {fingerprint.data(), strnlen(fingerprint.data(), fingerprint.size())};
}

ModelIdentity Changed(const ModelIdentity& model, std::string_view change) {
  return ModelIdentity::Of(Sha256Hex(fmt::format("{} {}", FingerprintText(model.model), change)),
                           FingerprintText(model.tokenizer));
}

std::vector<std::string> NotUsed(const OpenedModel& opened) {
  std::vector<std::string> sentences;
  if (opened.checkpoint.has_value()) sentences = opened.checkpoint->not_used;
  if (opened.tokenizer == nullptr) return sentences;
  const std::vector<std::string> notes = opened.tokenizer->notes();
  sentences.insert(sentences.end(), notes.begin(), notes.end());
  return sentences;
}

Result<OpenedModel> OpenModel(const ModelSource& source) {
  Result<OpenedModel> opened = OpenParts(source);
  if (!opened.ok()) FT_RETURN_IF_ERROR(RefuseDrafter(source.path));
  if (!opened.ok() || !IsSelfDraft(source.own_drafter)) return opened;
  const std::string_view exit = TrainedExitFolder(source.own_drafter);
  if (!exit.empty()) return EndEarly(exit, std::move(opened).value());
  return LeaveOut(source.own_drafter, std::move(opened).value());
}

std::shared_ptr<const ModelWeights> SharedWeights(const OpenedModel& draft, Precision precision,
                                                  const LoadedModel& loaded) {
  if (draft.weights_of != loaded.identity || precision != loaded.backend->precision()) return {};
  const ModelConfig& whole = loaded.weights->config();
  if (draft.config.max_positions > whole.max_positions) return {};
  return loaded.weights->Part(draft.config);
}

Result<std::unique_ptr<LoadedModel>> LoadModel(const OpenedModel& opened,
                                               std::shared_ptr<Device> device, Numerics numerics,
                                               PackedWeights* packed,
                                               const LoadProgress& progress) {
  const Precision precision = numerics.precision;
  auto backend = device->MakeBackend(numerics);
  std::shared_ptr<const ModelWeights> weights;
  if (packed != nullptr && packed->identity == opened.identity && packed->precision == precision) {
    weights = packed->weights.lock();
  }
  // Their rotations are of so many positions.
  if (weights != nullptr && weights->config().max_positions != opened.config.max_positions) {
    weights = nullptr;
  }
  if (weights == nullptr && opened.checkpoint.has_value()) {
    FT_ASSIGN_OR_RETURN(weights, LoadWeights(*opened.checkpoint, opened.config, backend.get(),
                                             progress, opened.experts));
  } else if (weights == nullptr) {
    weights = SyntheticWeights(opened.config, kSyntheticSeed, backend.get());
  }
  if (packed != nullptr) *packed = {opened.identity, precision, weights};
  std::shared_ptr<const AdapterSet> adapters;
  if (!opened.adapters.empty()) {
    adapters = std::make_shared<const AdapterSet>(opened.adapters, backend.get());
  }
  std::vector<std::string> fingerprints;
  for (const Adapter& adapter : opened.adapters) fingerprints.push_back(adapter.fingerprint);
  return Complete({.device = std::move(device),
                   .backend = std::move(backend),
                   .tokenizer = opened.tokenizer,
                   .weights = std::move(weights),
                   .adapters = std::move(adapters),
                   .adapter_fingerprints = std::move(fingerprints),
                   .identity = opened.identity,
                   .translation = opened.translation,
                   .text = opened.text,
                   .path = opened.checkpoint.has_value() ? opened.checkpoint->path.string() : "",
                   .experts = opened.experts,
                   .not_used = NotUsed(opened)});
}

Numerics NumericsFor(const OpenedModel& opened, std::optional<Precision> precision,
                     std::optional<KvFormat> kv) {
  const Precision usual =
      opened.checkpoint.has_value() ? UsualPrecision(*opened.checkpoint) : Precision::kBF16;
  return {precision.value_or(usual), kv};
}

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source,
                                               std::shared_ptr<Device> device,
                                               std::optional<Precision> precision,
                                               std::optional<KvFormat> kv,
                                               const LoadProgress& progress,
                                               std::span<const AdapterSource> adapters) {
  if (!source.draft_vocabulary.whole()) {
    return InvalidInput("only a draft may be limited to the most frequent tokens, not a target");
  }
  FT_ASSIGN_OR_RETURN(OpenedModel opened, OpenModel(source));
  FT_ASSIGN_OR_RETURN(opened.adapters, ReadAdapters(adapters, opened.config));
  return LoadModel(opened, std::move(device), NumericsFor(opened, precision, kv), nullptr,
                   progress);
}

std::unique_ptr<LoadedModel> OnDevice(const LoadedModel& loaded, std::shared_ptr<Device> device) {
  auto backend = device->MakeBackend({loaded.backend->precision(), loaded.backend->kv_format()});
  return Complete({.device = std::move(device),
                   .backend = std::move(backend),
                   .tokenizer = loaded.tokenizer,
                   .weights = loaded.weights,
                   .adapters = loaded.adapters,
                   .adapter_fingerprints = loaded.adapter_fingerprints,
                   .identity = loaded.identity,
                   .translation = loaded.translation,
                   .text = loaded.text,
                   .path = loaded.path,
                   .experts = loaded.experts,
                   .not_used = loaded.not_used,
                   .draft_weights = loaded.draft_weights});
}

}  // namespace foretoken
