#include "assembly/loaded_model.h"

#include "backend/cpu/cpu_backend.h"
#include "model/model_weights.h"
#include "weights/fingerprint.h"

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

// Loads the weights of `source` for `backend`; the tokenizer too where there is one to load.
Status LoadWeights(const ModelSource& source, LoadedModel* loaded) {
  if (source.directory.empty()) {
    FT_ASSIGN_OR_RETURN(const ModelConfig config, NamedShape(source.synthetic));
    Backend* backend = loaded->backend.get();
    loaded->model = SyntheticWeights(config, kSyntheticSeed, backend)->MakeModel(backend);
    loaded->identity = ModelIdentity::Of("synthetic " + source.synthetic, "");
    return {};
  }
  FT_ASSIGN_OR_RETURN(const ModelFolder folder, ModelFolder::Open(source.directory));
  FT_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(folder));
  FT_ASSIGN_OR_RETURN(loaded->tokenizer, Tokenizer::Load(source.directory));
  if (loaded->tokenizer->vocabulary() > config.vocabulary) {
    return InvalidInput(fmt::format(
        "{}: the tokenizer has {} tokens but the model only {}: they do not belong together",
        source.directory, loaded->tokenizer->vocabulary(), config.vocabulary));
  }
  FT_ASSIGN_OR_RETURN(const auto weights,
                      foretoken::LoadWeights(folder, config, loaded->backend.get()));
  loaded->model = weights->MakeModel(loaded->backend.get());
  loaded->identity = ModelIdentity::Of(FingerprintModel(folder), loaded->tokenizer->fingerprint());
  loaded->constraints =
      std::make_unique<ConstraintCompiler>([tokenizer = loaded->tokenizer.get(), eos = config.eos] {
        return VocabularyOf(*tokenizer, eos);
      });
  return {};
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, const CoreSet& cores,
                                               Precision precision) {
  auto pool = std::make_unique<ThreadPool>(cores);
  FT_ASSIGN_OR_RETURN(auto loaded, LoadModel(source, pool.get(), precision));
  loaded->pool = std::move(pool);
  return loaded;
}

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, ThreadPool* pool,
                                               Precision precision) {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->backend = MakeCpuBackend({.pool = pool, .precision = precision});
  FT_RETURN_IF_ERROR(LoadWeights(source, loaded.get()));
  return loaded;
}

Status CheckPair(const LoadedModel& target, const LoadedModel& draft) {
  if (target.tokenizer != nullptr && draft.tokenizer != nullptr) {
    FT_RETURN_IF_ERROR(CheckSameVocabulary(*target.tokenizer, *draft.tokenizer));
  }
  const int target_size = target.model->config().vocabulary;
  const int draft_size = draft.model->config().vocabulary;
  if (target_size != draft_size) {
    return InvalidInput(
        fmt::format("the draft's output has {} entries and the target's {}: the pair must share "
                    "one vocabulary",
                    draft_size, target_size));
  }
  return {};
}

}  // namespace foretoken
