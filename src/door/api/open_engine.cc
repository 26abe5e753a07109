#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/exhaustion.h"
#include "core/engine/rules.h"
#include "door/api/study.h"
#include "door/assembly/make_engine.h"
#include "door/assembly/times.h"
#include "door/learning/draft_learner.h"
#include "text/tokenizer/encode_behind.h"

namespace foretoken {
namespace {

Result<EngineConfig> ConfigFor(const EngineOptions& options) {
  FT_RETURN_IF_ERROR(CheckShapes(options.plan));
  EngineConfig config;
  const SpeculationPlan base =
      DefaultPlan(options.plan.lookahead.value_or(SpeculationPlan().lookahead));
  FT_ASSIGN_OR_RETURN(config.plan, ApplyOptions(options.plan, base));
  config.planner = PlannerSettingsFor(options.plan, config.plan);
#define FORETOKEN_ENGINE_FIELD(type, name, value) config.name = options.name;
#include "foretoken/tables/engine_fields.inc"
#undef FORETOKEN_ENGINE_FIELD
  if (!options.max_lookahead) return config;
  const int most = std::max(*options.max_lookahead, config.plan.lookahead);
  config.max_lookahead = most;
  if (!options.max_cache_budget) {  // As wide a fan-out for every K that may be asked for.
    const int widest = std::max(config.plan.primary.widest(), config.plan.after_fallback.widest());
    config.max_cache_budget = std::min(kMaxCacheBudget, (most + 1) * widest);
  }
  return config;
}

// With the end of the text behind each answer.
ScriptedAnswer Encoded(AnswerText answer, const Tokenizer* tokenizer) {
  return [answer = std::move(answer), tokenizer](std::span<const Token> prompt) {
    const std::optional<std::string> text = answer(prompt);
    std::vector<Token> tokens;
    if (!text.has_value()) return tokens;
    tokens = EncodeBehind(*tokenizer, *text);
    if (const auto eos = tokenizer->eos(); !eos.empty()) tokens.push_back(eos[0]);
    return tokens;
  };
}

// The first one may be missing, but then there are no others.
Status CheckDrafts(std::span<const DraftOptions> drafts) {
  if (drafts.size() > kDraftModels.size()) {
    return InvalidInput(fmt::format("an engine has {} draft models at most, and {} are given",
                                    kDraftModels.size(), drafts.size()),
                        "further_drafts");
  }
  const auto missing = [](const DraftOptions& draft) { return draft.source.empty(); };
  if (drafts.size() > 1 && std::ranges::any_of(drafts, missing)) {
    return InvalidInput("a draft model beside others has no source", "further_drafts");
  }
  return {};
}

// `study` is null where there is none.
Result<std::unique_ptr<Engine>> OpenWith(std::shared_ptr<LanguageModel> target,
                                         const EngineOptions& options, const StudyOptions* study) {
  if (options.modes.empty()) return InvalidInput("an engine offers one mode at least", "modes");
  FT_ASSIGN_OR_RETURN(EngineConfig config, ConfigFor(options));
  Measuring measuring;
  if (study == nullptr) {
    if (options.keep_times) measuring.kept_in = DefaultTimesFolder();
  } else {
    config.script = study->script;
    if (study->answer != nullptr && target->tokenizer() != nullptr) {
      config.script.emplace().answer = Encoded(study->answer, target->tokenizer());
    }
    config.speculator_delay_us = study->speculator_delay_us;
    measuring.sweeps = study->measuring_sweeps;
    if (study->measured_with != nullptr) measuring.known = TimesOf(*study->measured_with);
  }
  LoadedModel& loaded = target->loaded();
  std::vector<DraftOptions> drafts = {options.draft};
  drafts.insert(drafts.end(), options.further_drafts.begin(), options.further_drafts.end());
  FT_RETURN_IF_ERROR(CheckDrafts(drafts));
  const auto learner = std::make_shared<std::unique_ptr<DraftLearner>>();  // Made below.
  if (options.learning.has_value()) {
    config.kept = {.points = {TapShape::kFinalState}, .hidden = loaded.model->config().hidden};
    config.when_decoded = [learner](const DecodedText& text) { (*learner)->Take(text); };
    if (const auto learned = DraftLearner::InUse(options.learning->folder)) {
      drafts[0] = DraftLearner::At(*learned, std::move(drafts[0]));
    }
  }
  FT_ASSIGN_OR_RETURN(auto engine, MakeEngine(options.modes, config, &loaded, drafts, measuring));
  if (options.learning.has_value()) {
    FT_ASSIGN_OR_RETURN(*learner, DraftLearner::Make(&loaded, options.draft, TapsOf(*engine),
                                                     *options.learning, options.log));
    (*learner)->Begin(engine.get());
  }
  // Its thread ends when the engine lets go of it; the engine's own thread tells it of texts until
  // the engine is gone.
  engine->Keep(std::move(target), {learner->get(), [learner](DraftLearner* ended) {
                                     if (ended != nullptr) ended->End();
                                   }});
  return engine;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Open(std::shared_ptr<LanguageModel> target,
                                             const EngineOptions& options) {
  return OrExhausted([&] { return OpenWith(std::move(target), options, nullptr); });
}

std::optional<LearningReport> Engine::learning_report() const {
  if (learner_ == nullptr) return std::nullopt;
  return learner_->report();
}

Result<std::shared_ptr<NextDraft>> Engine::PrepareDraft(const DraftOptions& draft) const {
  return OrExhausted([&] { return foretoken::PrepareDraft(*this, &target_->loaded(), draft); });
}

Result<std::unique_ptr<Engine>> OpenForStudy(std::shared_ptr<LanguageModel> target,
                                             const EngineOptions& options,
                                             const StudyOptions& study) {
  return OrExhausted([&] { return OpenWith(std::move(target), options, &study); });
}

}  // namespace foretoken
