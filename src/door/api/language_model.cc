#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "base/exhaustion.h"
#include "base/result.h"
#include "base/threads/cores.h"
#include "core/backend/batch_plan.h"
#include "door/assembly/loaded_model.h"
#include "foretoken/model.h"

namespace foretoken {
namespace {

ModelFacts FactsOf(const LoadedModel& loaded) {
  const ModelConfig& config = loaded.model->config();
  return {.parameters = config.parameters(),
          .vocabulary = config.vocabulary,
          .hidden = config.hidden,
          .max_context = config.max_positions,
          .weight_bytes = loaded.model->weight_bytes(),
          .kv_bytes_per_token = loaded.backend->KvBytes(loaded.model->KvShapeFor(1)) / kBlockSize,
          .backend = std::string(loaded.backend->name()),
          .not_used = loaded.not_used};
}

}  // namespace

std::string ModelSource::label() const {
  const DraftVocabulary& says = draft_vocabulary;
  const std::string among =
      says.whole() ? ""
      : says.most  ? fmt::format("[{}]", *says.most)
                   : fmt::format("[{}]", std::filesystem::path(says.ranking).filename().string());
  if (path.empty()) return (name.empty() ? synthetic : name) + among;
  const auto place = std::filesystem::path(path).lexically_normal();
  const std::string called =
      !name.empty() ? name
      : place.extension() == ".gguf"
          ? place.stem().string()
          : (place.has_filename() ? place.filename() : place.parent_path().filename()).string();
  return (weights.empty() ? called : called + ":" + weights) + among;
}

LanguageModel::LanguageModel(ModelSource source, std::vector<AdapterSource> adapters,
                             std::unique_ptr<LoadedModel> loaded)
    : source_(std::move(source)),
      adapters_(std::move(adapters)),
      loaded_(std::move(loaded)),
      facts_(FactsOf(*loaded_)) {}
LanguageModel::~LanguageModel() = default;

Result<std::shared_ptr<LanguageModel>> LanguageModel::Load(const LoadOptions& options) {
  const CoreSet cores = options.cores.empty() ? AvailableCores() : options.cores;
  return OrExhausted([&]() -> Result<std::shared_ptr<LanguageModel>> {
    FT_ASSIGN_OR_RETURN(
        auto loaded, LoadModel(options.source, std::make_shared<Device>(cores), options.precision,
                               options.kv, options.progress, options.adapters));
    return std::shared_ptr<LanguageModel>(
        new LanguageModel(options.source, options.adapters, std::move(loaded)));
  });
}

std::shared_ptr<LanguageModel> LanguageModel::OnCores(std::vector<int> cores) const {
  return std::shared_ptr<LanguageModel>(new LanguageModel(
      source_, adapters_, OnDevice(*loaded_, std::make_shared<Device>(std::move(cores)))));
}

const Tokenizer* LanguageModel::tokenizer() const { return loaded_->tokenizer.get(); }

Result<std::shared_ptr<TokenConstraint>> LanguageModel::CompileGrammar(
    std::string_view grammar) const {
  if (loaded_->constraints == nullptr) {
    return InvalidInput("a grammar needs a tokenizer, and synthetic models have none");
  }
  return loaded_->constraints->Compile(grammar);
}

}  // namespace foretoken
