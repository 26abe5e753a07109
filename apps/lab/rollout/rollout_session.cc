#include "apps/lab/rollout/rollout_session.h"

#include <algorithm>
#include <utility>

#include "door/assembly/loaded_model.h"
#include "foretoken/receipt.h"
#include "json/json.h"

namespace foretoken {
namespace {

// What the samples' tokens depend on, as the receipt of one would have it.
Json HeaderOf(const LanguageModel& target, const Request& request, const RolloutOptions& options,
              const std::vector<RolloutPrompt>& prompts) {
  Json header = Json::Parse(
      FormatReceipt(MakeReceipt(target, request, /*tokens=*/{}, FinishReason::kMaxTokens)));
  header["foretoken_rollout"] = 1;
  header["target"] = target.source().label();
  header["weights"] = header["model"];
  header["prompts"] = FingerprintOf(prompts);
  header["max_tokens"] = request.stop.max_tokens;
  header["stop"] = request.stop.stop_strings;
  header["ignore_eos"] = request.stop.ignore_eos;
  header["verify"] = options.speculation.verification;
  for (const char* of_one :
       {"receipt", "model", "prompt", "continues_text", "tokens", "finish_reason", "chain"}) {
    header.erase(of_one);
  }
  return header;
}

int LongestOf(const std::vector<RolloutPrompt>& prompts) {
  std::size_t longest = 0;
  for (const RolloutPrompt& prompt : prompts) longest = std::max(longest, prompt.tokens.size());
  return static_cast<int>(longest);
}

// Nothing where the last samples have nothing to change.
std::optional<TailPlan> TailOf(Mode mode, const std::optional<Mode>& tail_mode,
                               const RolloutOptions& options) {
  const SpeculationOptions& given = options.speculation;
  const Mode last = tail_mode.value_or(mode);
  const bool fixed = given.lookahead > 0 || !given.speculation_length.empty();
  if (!tail_mode && (mode.planned() || fixed)) return std::nullopt;
  const int full = given.lookahead > 0 ? given.lookahead : SpeculationOptions::kDefaultLookahead;
  return TailPlan{.mode = last,
                  .rows = options.batch * (mode.drafts() ? full + 1 : 1),
                  .lookahead = std::max(full, kMaxPlannedLookahead),
                  .fixed = fixed,
                  .asked = tail_mode.has_value()};
}

}  // namespace

/// Weights of drafts, which are there for the next target's engine while nobody else holds them.
struct RolloutSession::Drafts {
  explicit Drafts(std::shared_ptr<ByDrafter<PackedWeights>> of_target)
      : packed(std::move(of_target)) {
    for (const PackedWeights& draft : *packed) weights.push_back(draft.weights.lock());
  }

  std::shared_ptr<ByDrafter<PackedWeights>> packed;
  std::vector<std::shared_ptr<const ModelWeights>> weights;
};

/// A target with the engine over it.
struct RolloutSession::Loaded {
  RolloutOptions options;  // Their models are resolved.
  Mode mode;
  std::optional<Mode> tail_mode;
  std::optional<TailPlan> tail;
  Decoding decoding;
  std::unique_ptr<Engine> engine;  // Null: yet to be opened.

  std::vector<Mode> modes() const {
    std::vector<Mode> all = options.datastore.ModesFor(mode);
    if (tail_mode) all.push_back(*tail_mode);
    return all;
  }
};

RolloutSession::RolloutSession(RolloutOptions options) : options_(std::move(options)) {}
RolloutSession::~RolloutSession() = default;

Status RolloutSession::CheckTokenizer(const std::string& target) const {
  if (tokenizer_.empty()) return {};
  FT_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(target));
  if (tokenizer->fingerprint() == tokenizer_) return {};
  return Invalid(
      "'{}' has another tokenizer than the target before: weights may change between two jobs, not "
      "the tokens",
      target);
}

Status RolloutSession::LoadFor(const RolloutOrder& order) {
  if (loaded_ != nullptr && order.target.empty()) return {};
  const std::string target = order.target.empty() ? target_ : order.target;
  if (!order.target.empty()) FT_RETURN_IF_ERROR(CheckTokenizer(target));
  if (loaded_ != nullptr) FT_RETURN_IF_ERROR(loaded_->decoding.datastore.Flush());
  loaded_.reset();  // Before the others come: memory need not hold both.
  FT_ASSIGN_OR_RETURN(loaded_, Load(target));
  target_ = target;
  tokenizer_ = loaded_->decoding.target->tokenizer()->fingerprint();
  return {};
}

Result<std::unique_ptr<RolloutSession::Loaded>> RolloutSession::Load(const std::string& target) {
  auto loaded = std::make_unique<Loaded>();
  RolloutOptions& options = loaded->options;
  options = options_;
  if (!target.empty()) {
    options.model.target = target;
    options.model.hub_target.clear();
  }
  FT_ASSIGN_OR_RETURN(loaded->mode, options.Choose());
  if (!options.tail_mode.empty()) {
    FT_ASSIGN_OR_RETURN(const Mode tail, ParseMode(options.tail_mode));
    FT_RETURN_IF_ERROR(options.model.CheckDraftOf(tail));
    if (tail != loaded->mode) loaded->tail_mode = tail;
  }
  FT_RETURN_IF_ERROR(options.CheckFor(loaded->modes()));
  loaded->tail = TailOf(loaded->mode, loaded->tail_mode, options);
  // A full batch keeps all cores busy by itself, so none is left to a draft unless that is asked
  // for: mode auto then chooses among what runs on the target's.
  FT_ASSIGN_OR_RETURN(loaded->decoding,
                      options.Load(loaded->mode.planned() ? Mode::kSd : loaded->mode));
  if (drafts_ != nullptr) loaded->decoding.target->loaded().draft_weights = drafts_->packed;
  return loaded;
}

Status RolloutSession::OpenEngine(const std::vector<RolloutPrompt>& prompts) {
  const RolloutOptions& options = loaded_->options;
  const int wanted = LongestOf(prompts) + options.generation.stop.max_tokens +
                     std::max(options.speculation.MostLookahead(), kMaxPlannedLookahead);
  FT_ASSIGN_OR_RETURN(const int context,
                      ChooseContext(options.model, *loaded_->decoding.target, wanted));
  if (loaded_->engine != nullptr && loaded_->engine->limits().context >= context) return {};
  loaded_->engine.reset();  // Its keys and values go before others are made.
  FT_ASSIGN_OR_RETURN(
      EngineOptions engine,
      options.EngineFor(loaded_->modes(), loaded_->decoding.cores, options.batch, context));
  if (loaded_->tail) engine.max_lookahead = loaded_->tail->lookahead;
  FT_ASSIGN_OR_RETURN(loaded_->engine, Engine::Open(loaded_->decoding.target, engine));
  drafts_ = std::make_unique<Drafts>(loaded_->decoding.target->loaded().draft_weights);
  return {};
}

Result<RolloutDone> RolloutSession::Take(const RolloutOrder& order) {
  FT_RETURN_IF_ERROR(LoadFor(order));
  const RolloutOptions& options = loaded_->options;
  const LanguageModel& target = *loaded_->decoding.target;
  FT_ASSIGN_OR_RETURN(const int context, ChooseContext(options.model, target, /*wanted=*/0));
  RolloutJob job{.model = loaded_->decoding.target->source().label(),
                 .samples = order.samples,
                 .batch = options.batch,
                 .tail = loaded_->tail};
  FT_ASSIGN_OR_RETURN(job.prompts,
                      ReadRolloutPrompts(order.prompts,
                                         {.tokenizer = *target.tokenizer(),
                                          .raw = order.prompts.raw,
                                          .variables = options.chat_template.variables},
                                         context));
  job.request.sampling = options.generation.sampling;
  job.request.sampling.seed = order.seed;
  job.request.stop = options.generation.stop;
  job.request.datastore = loaded_->decoding.datastore.tenant;
  FT_ASSIGN_OR_RETURN(job.request.adapter, TheAdapter(target));
  const Json header = HeaderOf(target, job.request, options, job.prompts);
  FT_ASSIGN_OR_RETURN(RolloutFile file, RolloutFile::Open(order.out, header));
  FT_RETURN_IF_ERROR(OpenEngine(job.prompts));
  RolloutDone done{.report = {},
                   .target = target.source().label(),
                   .weights = header["weights"],
                   .draft = options.model.DraftLabel(),
                   .mode = loaded_->mode,
                   .tail_mode = loaded_->tail_mode,
                   .prompts = job.prompts.size()};
  FT_ASSIGN_OR_RETURN(done.report, RunRollout(job, loaded_->engine.get(), &file));
  FT_RETURN_IF_ERROR(loaded_->decoding.datastore.Flush());
  return done;
}

}  // namespace foretoken
