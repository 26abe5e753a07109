#include "assembly/loaded_model.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "draft/model/model_drafter.h"
#include "draft/retrieval/rest_drafter.h"
#include "draft/retrieval/retrieval_drafter.h"
#include "draft/retrieval/speculation_length.h"
#include "draft/retrieval/trie_drafter.h"
#include "model/measure/pass_times.h"
#include "model/model_weights.h"
#include "ssd/speculator.h"
#include "transport/process_host.h"
#include "transport/ring_channel.h"
#include "transport/thread_host.h"

namespace foretoken {
namespace {

constexpr std::uint64_t kSyntheticSeed = 20260301;
constexpr std::int64_t kReadyPatienceNs = 120'000'000'000;

std::unique_ptr<Backend> MakeBackend(ThreadPool* pool, Precision precision) {
  return MakeCpuBackend({.pool = pool, .precision = precision});
}

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
  loaded->constraints =
      std::make_unique<ConstraintCompiler>([tokenizer = loaded->tokenizer.get(), eos = config.eos] {
        return VocabularyOf(*tokenizer, eos);
      });
  return {};
}

std::unique_ptr<LoadedModel> OnCores(const CoreSet& cores, Precision precision) {
  auto loaded = std::make_unique<LoadedModel>();
  loaded->pool = std::make_unique<ThreadPool>(cores);
  loaded->backend = MakeBackend(loaded->pool.get(), precision);
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

// SD's drafter with the model it owns: the draft's backend shares the target's pool.
class OwningDrafter : public Drafter {
 public:
  OwningDrafter(std::unique_ptr<LoadedModel> draft, int max_batch, int max_context)
      : draft_(std::move(draft)), drafter_(draft_->model.get(), max_batch, max_context) {}
  void Propose(std::span<DraftContext> contexts) override { drafter_.Propose(contexts); }
  void Forget(SequenceId sequence) override { drafter_.Forget(sequence); }

 private:
  std::unique_ptr<LoadedModel> draft_;
  ModelDrafter drafter_;
};

// Row counts and contexts that the planner starts from, and how long a table may take.
// Kernels work on tiles of rows, so times have steps: with AVX2 a fifth row takes as long as an
// eighth, and a line from 4 to 8 would say 20 % less (from 12 to 16, for 13, 12 %).
// Proposals of a large batch make more rows: continued from 16 and 32, passes of 112 seemed
// anything from as long as they are to a quarter longer, by what noise there was in 32.
constexpr std::array kMeasuredRows = {1,  2,  3,  4,  5,  6,  7,  8,  9, 12,
                                      13, 16, 17, 20, 21, 24, 25, 32, 64};
static_assert(kMeasuredRows.size() <= TimeTable::kMaxRowPoints);
constexpr int kShortContext = 64;
constexpr int kLongContext = 1024;
// Long enough for a sequence's keys and values to show beside the rest of a pass.
constexpr int kSequenceContext = 256;
constexpr std::int64_t kMeasuringNs = 900'000'000;
constexpr std::int64_t kMeasuringManyRowsNs = 300'000'000;  // More, where a batch has so many.

TimeTable TableOf(const PassTimes& times) {
  const auto table = TimeTable::Make(times.rows, times.contexts, times.us);
  FT_CHECK(table.ok(), "{}", table.ok() ? "" : table.error().message);
  return *table;
}

// Calls `work` where the pool's passes will run: this thread may be anywhere, on a draft's core
// too.
template <typename Work>
auto OnItsCores(ThreadPool* pool, const Work& work) {
  decltype(work()) result;
  std::thread([&] {
    pool->Adopt();
    result = work();
  }).join();
  return result;
}

// What rows cost on the target's device. Attention hardly counts behind so short a context.
void MeasureRows(const LoadedModel& target, EngineOptions* options) {
  // With AVX2 a fifth row takes 2.65 times one and a fourth 1.47: the steps must be seen.
  constexpr std::array kRows = {1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 24, 32, 64, 128, 256};
  constexpr std::array kContexts = {kShortContext};
  const PassTimes times = OnItsCores(target.pool.get(), [&] {
    return MeasurePassTimes(*target.model, kRows, kContexts, kMeasuringNs);
  });
  options->row_times = TableOf(times);
  options->knee_rows = KneeRows(times.rows, times.us);
}

TimeTable MeasureTable(Model& model, ThreadPool* pool, const EngineOptions& options) {
  std::span<const int> rows = kMeasuredRows;
  std::int64_t budget_ns = kMeasuringNs + kMeasuringManyRowsNs;
  const std::span<const int> fewer = rows.first(rows.size() - 1);
  if (options.max_batch * (1 + options.max_lookahead) <= fewer.back()) {
    rows = fewer;
    budget_ns = kMeasuringNs;
  }
  const int longest = model.config().max_positions - rows.back();
  const std::array contexts = {kShortContext,
                               std::max(kShortContext + 1, std::min(kLongContext, longest))};
  const int sweeps = options.measuring_sweeps;
  return OnItsCores(pool, [&] {
    return TableOf(MeasurePassTimes(model, rows, contexts, budget_ns * sweeps, sweeps));
  });
}

Result<std::unique_ptr<Drafter>> MakeDraftModelDrafter(EngineOptions* options,
                                                       const DraftSetup& draft,
                                                       LoadedModel* target) {
  auto model = std::make_unique<LoadedModel>();
  model->backend = MakeBackend(target->pool.get(), draft.precision);
  FT_RETURN_IF_ERROR(LoadWeights(draft.source, model.get()));
  FT_RETURN_IF_ERROR(CheckPair(*target, *model));
  if (options->planner.has_value()) {
    options->costs.draft_on_target = MeasureTable(*model->model, target->pool.get(), *options);
  }
  return std::unique_ptr<Drafter>(
      std::make_unique<OwningDrafter>(std::move(model), options->max_batch, options->max_context));
}

void Warn(const std::string& sentence) {
  std::fprintf(stderr, "foretoken: warning: %s\n", sentence.c_str());
}

void Serve(const LoadedModel& draft, Channel& channel, const std::atomic<bool>& stop) {
  draft.pool->Adopt();
  Speculator speculator(draft.model.get(), &channel, draft.constraints.get());
  speculator.Run([](void* flag) { return static_cast<const std::atomic<bool>*>(flag)->load(); },
                 const_cast<std::atomic<bool>*>(&stop));
}

Result<std::unique_ptr<SpeculatorHost>> StartHost(EngineOptions* options, const DraftSetup& setup,
                                                  const LoadedModel& target) {
  const std::string place = "on cores " + FormatCores(setup.cores);
  // Loaded here in any case: a bad draft is then refused at once, in one sentence.
  auto draft = std::shared_ptr<LoadedModel>(OnCores(setup.cores, setup.precision));
  FT_RETURN_IF_ERROR(LoadWeights(setup.source, draft.get()));
  FT_RETURN_IF_ERROR(CheckPair(target, *draft));
  if (options->planner.has_value()) {
    options->costs.draft = MeasureTable(*draft->model, draft->pool.get(), *options);
    const Contention contention =
        MeasureContention({target.model.get(), target.pool.get()},
                          {draft->model.get(), draft->pool.get()}, options->measuring_sweeps);
    options->costs.target_contention = contention.first;
    options->costs.draft_contention = contention.second;
  }
  if (!setup.process) {
    return ThreadHost::Start(
        [draft](Channel& channel, const std::atomic<bool>& stop) { Serve(*draft, channel, stop); },
        place);
  }
  std::vector<std::string> command = {setup.executable, "speculator"};
  if (setup.source.directory.empty()) {
    command.insert(command.end(), {"--synthetic", setup.source.synthetic});
  } else {
    command.insert(command.end(), {"--draft", setup.source.directory});
  }
  command.insert(command.end(), {"--cores", FormatCores(setup.cores), "--precision",
                                 setup.precision == Precision::kBF16 ? "bf16" : "f32"});
  return ProcessHost::Start(std::move(command), place);
}

Result<std::unique_ptr<SpeculatorClient>> StartSpeculator(EngineOptions* options,
                                                          const DraftSetup& setup,
                                                          const LoadedModel& target) {
  FT_ASSIGN_OR_RETURN(auto host, StartHost(options, setup, target));
  auto client = std::make_unique<SpeculatorClient>(
      std::move(host),
      ConfigureMessage{.max_lookahead = options->max_lookahead,
                       .max_nodes = options->max_nodes,
                       .max_cache_budget = options->max_cache_budget,
                       .max_sequences = options->max_batch,
                       .max_context = options->max_context,
                       .delay_us = setup.delay_us},
      Warn);
  FT_RETURN_IF_ERROR(client->WaitReady(kReadyPatienceNs));
  return client;
}

bool NeedsRowTimes(std::span<const Mode> offered, const SpeculationPlan& plan) {
  const auto offers = [offered](Mode mode) {
    return std::ranges::find(offered, mode) != offered.end();
  };
  const bool falls_back =
      offers(Mode::kSsd) && (plan.fallback == Fallback::kRetrieval || offers(Mode::kSssd));
  if (plan.speculation_length == 0) return falls_back;
  return plan.speculation_length < 0 && (falls_back || std::ranges::any_of(offered, Retrieves));
}

// What mode auto chooses from where no more is said: everything that there is a draft and a device
// for.
void OfferAll(const DraftSetup& draft, const LoadedModel& target, std::vector<Mode>* offered) {
  const auto add = [offered](Mode mode) {
    if (std::ranges::find(*offered, mode) == offered->end()) offered->push_back(mode);
  };
  add(Mode::kAr);
  add(Mode::kNgram);
  if (draft.source.directory.empty() && draft.source.synthetic.empty()) return;
  add(Mode::kSd);
  const CoreSet& used = target.pool->cores();
  const bool own_core = std::ranges::none_of(
      draft.cores, [&used](int core) { return std::ranges::find(used, core) != used.end(); });
  if (own_core && !draft.cores.empty()) add(Mode::kSsd);
}

constexpr int kPlannedCacheBudget = 64;

// What plans of mode auto may need beyond the engine's own.
void MakeRoomForAuto(EngineOptions* options) {
  const PlanLimits& limits = options->planner->limits;
  const SpeculationPlan& plan = options->plan;
  if (options->max_lookahead == 0) {
    options->max_lookahead = std::max(plan.lookahead, limits.max_lookahead);
  }
  if (options->max_cache_budget == 0) {
    options->max_cache_budget = std::max({kPlannedCacheBudget, limits.cache_budget,
                                          plan.primary.budget(), plan.after_fallback.budget()});
  }
}

void PreparePlanner(std::span<const Mode> offered, LoadedModel* target, EngineOptions* options) {
  PlanLimits& limits = options->planner->limits;
  limits.modes = {};
  for (const Mode mode : offered) {
    if (mode != Mode::kAuto) limits.modes.push_back(mode);
  }
  const bool retrieves = options->plan.fallback == Fallback::kRetrieval ||
                         std::ranges::find(offered, Mode::kSssd) != offered.end();
  if (!retrieves) {
    const auto end =
        std::remove(limits.fallbacks.begin(), limits.fallbacks.end(), Fallback::kRetrieval);
    limits.fallbacks.resize(static_cast<std::size_t>(end - limits.fallbacks.begin()));
  }
  limits.max_lookahead = std::min(limits.max_lookahead, options->max_lookahead);
  limits.max_cache_budget = std::min(limits.max_cache_budget, options->max_cache_budget);
  options->costs.target = MeasureTable(*target->model, target->pool.get(), *options);
  options->costs.sequence_token_us = OnItsCores(target->pool.get(), [target] {
    return MeasureSequenceTokenUs(*target->model, kSequenceContext);
  });
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadModel(const ModelSource& source, const CoreSet& cores,
                                               Precision precision) {
  auto loaded = OnCores(cores, precision);
  FT_RETURN_IF_ERROR(LoadWeights(source, loaded.get()));
  return loaded;
}

Result<std::unique_ptr<Engine>> MakeEngine(std::span<const Mode> modes, EngineOptions options,
                                           LoadedModel* target, const DraftSetup& draft) {
  FT_CHECK(!modes.empty());
  options.plan.mode = modes.front();
  std::vector<Mode> offered(modes.begin(), modes.end());
  const bool chooses = std::ranges::find(offered, Mode::kAuto) != offered.end();
  if (!chooses && !options.plan.open()) options.planner.reset();
  if ((chooses || options.plan.open()) && !options.planner) options.planner.emplace();
  if (chooses) {
    OfferAll(draft, *target, &offered);
    MakeRoomForAuto(&options);
  }
  if (NeedsRowTimes(offered, options.plan) && options.row_times.rows().empty()) {
    MeasureRows(*target, &options);
  }
  options = CompleteOptions(options, target->model->config());
  if (options.planner.has_value()) PreparePlanner(offered, target, &options);
  Proposers proposers;
  for (const Mode mode : offered) {
    if (mode == Mode::kSd) {
      FT_ASSIGN_OR_RETURN(proposers.of(mode), MakeDraftModelDrafter(&options, draft, target));
    } else if (mode == Mode::kSsd) {
      FT_ASSIGN_OR_RETURN(proposers.speculator, StartSpeculator(&options, draft, *target));
    } else if (mode == Mode::kSssd) {
      proposers.of(mode) = std::make_unique<RetrievalDrafter>();
    } else if (mode == Mode::kRest) {
      proposers.of(mode) = std::make_unique<RestDrafter>();
    } else if (mode == Mode::kTrie) {
      proposers.of(mode) = std::make_unique<TrieDrafter>();
    }
  }
  return Engine::Create(options, target->model.get(), target->pool.get(), target->tokenizer.get(),
                        std::move(proposers));
}

Result<std::unique_ptr<Engine>> MakeEngine(Mode mode, const EngineOptions& options,
                                           LoadedModel* target, const DraftSetup& draft) {
  return MakeEngine(std::span(&mode, 1), options, target, draft);
}

Status RunSpeculatorProcess(const ModelSource& source, const CoreSet& cores, Precision precision,
                            int memory_fd) {
  // The engine's end is ours: without it nobody would read what we write.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN);  // Ctrl-C is for the program that the user sees.
  FT_ASSIGN_OR_RETURN(const auto memory, ChannelMemory::Attach(memory_fd));
  FT_ASSIGN_OR_RETURN(const auto draft, LoadModel(source, cores, precision));
  RingChannel channel(memory->to_engine(), memory->to_speculator());
  const std::atomic<bool> never = false;
  Serve(*draft, channel, never);
  return {};
}

}  // namespace foretoken
