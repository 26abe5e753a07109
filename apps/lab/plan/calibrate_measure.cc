#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "apps/lab/plan/calibrate.h"
#include "base/numbers/integers.h"

namespace foretoken {
namespace {

// Positions that are rarely reached lean on the one before them, and hits after all of another's
// proposal was accepted, which is rare, on those after the draft's: the draft ranks the next token
// in both. (Without that the few times a proposal of prompt lookup was accepted whole, sometimes
// none, decided whether anything was prepared there.)
constexpr double kPriorTrials = 4;
constexpr double kPriorLookups = 16;

// How often the cache was hit at each fan-out. What was seen too rarely leans on `prior`, if any.
struct Lookups {
  int count = 0;
  std::array<int, kMaxFanout> at_rank{};

  std::vector<double> HitRates(std::span<const double> prior = {}) const {
    std::vector<double> rates;
    double hits = 0;
    const double weight = prior.empty() ? 0 : kPriorLookups;
    for (std::size_t i = 0; i < at_rank.size(); ++i) {
      hits += at_rank[i];
      const double expected = prior.empty() ? 0 : weight * prior[i];
      rates.push_back(count + weight > 0 ? (hits + expected) / (count + weight) : 0);
    }
    return rates;
  }
};

// Rounds in which one kind of proposal was verified, counted.
class ProposalCounter {
 public:
  // A round of a chain that was cut by nothing but verification.
  void Add(const RoundRecord& round) {
    const int proposed = round.proposed.size();
    if (proposed == 0) return;
    ++rounds_;
    const int trials = std::min({proposed, round.accepted + 1, ProposerModel::kMaxPositions});
    for (int k = 0; k < trials; ++k) {
      ++trials_[k];
      accepted_[k] += k < round.accepted ? 1 : 0;
    }
    if (!round.hit.has_value()) return;
    Lookups& lookups = round.accepted == proposed ? full_ : partial_;
    ++lookups.count;
    if (round.hit_rank.has_value() && *round.hit_rank < kMaxFanout) {
      ++lookups.at_rank[*round.hit_rank];
    }
  }

  int rounds() const { return rounds_; }

  // Acceptance by position and hit rates by fan-out; unmeasured without a round.
  ProposerMeasurement Measurement(const ProposerMeasurement& draft = {}) const {
    ProposerMeasurement measurement;
    if (rounds_ == 0) return measurement;
    measurement.rounds = rounds_;
    double before = static_cast<double>(accepted_[0]) / trials_[0];
    for (std::size_t k = 0; k < trials_.size() && trials_[k] > 0; ++k) {
      const double prior = k == 0 ? 0 : kPriorTrials;
      before = (accepted_[k] + prior * before) / (trials_[k] + prior);
      measurement.acceptance.push_back(before);
    }
    measurement.hit_partial = partial_.HitRates();
    measurement.hit_full = full_.HitRates(draft.hit_full);
    return measurement;
  }

 private:
  int rounds_ = 0;
  std::array<int, ProposerModel::kMaxPositions> trials_{};
  std::array<int, ProposerModel::kMaxPositions> accepted_{};
  Lookups partial_;
  Lookups full_;
};

// Counts rounds by who made the proposal and gives the speculator its time.
class RateRecorder : public RequestListener {
 public:
  explicit RateRecorder(std::int64_t pause_ns) : pause_ns_(pause_ns) {}

  void OnRound(SequenceId, const RoundRecord& round) override {
    if (round.source != ProposalSource::kNone) by_drafter[round.source.drafter].Add(round);
    if (round.hit == false) ++misses;
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns_));
  }
  void OnToken(SequenceId, const EmittedToken&) override {}
  void OnFinish(SequenceId, FinishReason, const RequestStats&) override {}

  ByDrafter<ProposalCounter> by_drafter;
  int misses = 0;

 private:
  std::int64_t pause_ns_;
};

Status GenerateText(Engine& engine, const CalibrationTask& task, const PlanOptions& plan,
                    RequestListener* listener) {
  for (std::size_t i = 0; i < task.prompts.size(); ++i) {
    Request request{.prompt = task.prompts[i],
                    .sampling = task.sampling,
                    .stop = task.stop,
                    .plan = plan,
                    .listener = listener};
    request.sampling.seed += i;
    FT_RETURN_IF_ERROR(engine.Submit(std::move(request)));
    engine.RunUntilIdle();
    if (task.on_prompt) task.on_prompt();
  }
  return {};
}

Fanout AtEveryNode(int count) { return {.rule = FanoutRule::kGiven, .counts = {count}}; }

// Every candidate the draft has, after its own proposals.
PlanOptions WidePlan(int lookahead) {
  return {.mode = Mode::kSsd,
          .lookahead = lookahead,
          .fallback = Fallback::kJit,
          .fanout = AtEveryNode(kMaxFanout)};
}

// As good as nothing after its own proposals, so that the fallback is needed about every other
// round, and every candidate after the fallback's.
PlanOptions FallbackPlan(int lookahead, Fallback fallback) {
  PlanOptions plan = WidePlan(lookahead);
  plan.fallback = fallback;
  plan.fanout->counts.assign(Size(lookahead) + 1, 0);
  plan.fanout->counts.back() = 1;
  plan.fanout_after_fallback = AtEveryNode(kMaxFanout);
  return plan;
}

double MedianUs(const Histogram& histogram) {
  return static_cast<double>(histogram.Quantile(0.5)) / 1e3;
}

double MeanContext(const CalibrationTask& task) {
  double tokens = 0;
  for (const auto& prompt : task.prompts) tokens += static_cast<double>(prompt.size());
  return tokens / static_cast<double>(task.prompts.size()) + task.stop.max_tokens / 2.0;
}

// What a row of the speculator takes beside the draft's pass.
double DraftRowUs(const DraftPasses& draft, const CalibrationTask& task, const CostModel& times) {
  if (draft.passes == 0) return 0;
  const double rows = static_cast<double>(draft.rows) / static_cast<double>(draft.passes);
  const double us = static_cast<double>(draft.ns) / 1e3 / static_cast<double>(draft.passes);
  return std::max(0.0, us - times.first_draft().apart.us(rows, MeanContext(task))) / rows;
}

}  // namespace

Result<CalibratedSetting> MeasureRates(Engine& engine, const CalibrationTask& task,
                                       const CostModel& times) {
  CalibratedSetting setting;
  RateRecorder own(task.pause_ns);
  engine.ResetStats();
  FT_RETURN_IF_ERROR(GenerateText(engine, task, WidePlan(task.lookahead), &own));
  ProposerMeasurement& draft = setting.proposers[DrafterId::kModel];
  draft = own.by_drafter[DrafterId::kModel].Measurement();
  draft.us = DraftRowUs(engine.stats().draft, task, times);
  for (const DrafterId id : kDrafterIds) {
    if (!InfoOf(id).fallback || InfoOf(id).needs != DrafterNeeds::kText) continue;
    RateRecorder other(task.pause_ns);
    const Fallback fallback{Fallback::Kind::kDrafter, id};
    FT_RETURN_IF_ERROR(GenerateText(engine, task, FallbackPlan(task.lookahead, fallback), &other));
    const ProposalCounter& counter = other.by_drafter[id];
    ProposerMeasurement& measurement = setting.proposers[id];
    measurement = counter.Measurement(draft);
    // Proposals follow misses: how many of those had one.
    if (other.misses > 0) {
      measurement.coverage = std::min(1.0, static_cast<double>(counter.rounds()) / other.misses);
    }
  }
  return setting;
}

Result<CalibratedSetting> MeasureSaguaro(Engine& engine, const CalibrationTask& task,
                                         double saguaro_c) {
  PlanOptions plan = WidePlan(task.lookahead);
  plan.fanout = AtEveryNode(kSaguaroFanout);
  plan.saguaro_c = static_cast<float>(saguaro_c);
  RateRecorder recorder(task.pause_ns);
  FT_RETURN_IF_ERROR(GenerateText(engine, task, plan, &recorder));
  CalibratedSetting setting{.verifier = std::string(VerificationName(Verification::kRejection)),
                            .saguaro_c = saguaro_c};
  ProposerMeasurement& draft = setting.proposers[DrafterId::kModel];
  draft = recorder.by_drafter[DrafterId::kModel].Measurement();
  if (draft.measured()) {
    draft.hit_partial.resize(kSaguaroFanout);
    draft.hit_full.resize(kSaguaroFanout);
  }
  return setting;
}

Status MeasureOverheads(Engine& engine, const CalibrationTask& task, CostModel* times) {
  RateRecorder silent(0);
  engine.ResetStats();
  FT_RETURN_IF_ERROR(GenerateText(engine, task, {.mode = Mode::kAr}, &silent));
  const double plain_us = MedianUs(engine.stats().host);

  const PlanOptions plan{
      .mode = Mode::kSsd, .lookahead = task.lookahead, .fanout = AtEveryNode(kDefaultFanout)};
  engine.ResetStats();
  FT_RETURN_IF_ERROR(GenerateText(engine, task, plan, &silent));
  const EngineStats& stats = engine.stats();
  const double rows = stats.passes == 0 ? 1 : static_cast<double>(stats.rows) / stats.passes;
  times->host_row_us = rows > 1 ? std::max(0.0, (MedianUs(stats.host) - plain_us) / (rows - 1)) : 0;
  times->host_us = std::max(0.0, plain_us - times->host_row_us);
  return {};
}

}  // namespace foretoken
