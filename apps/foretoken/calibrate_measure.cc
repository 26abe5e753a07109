#include "calibrate_measure.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace foretoken {
namespace {

// Counts rounds by the source of the proposal and gives the speculator its time.
class RateRecorder : public RequestListener {
 public:
  explicit RateRecorder(std::int64_t settle_ns) : settle_ns_(settle_ns) {}

  void OnRound(SequenceId, const RoundRecord& round) override {
    switch (round.proposal->source) {
      case ProposalSource::kCache:
      case ProposalSource::kJit:
        draft.Add(round);
        break;
      case ProposalSource::kNgram:
        ngram.Add(round);
        break;
      case ProposalSource::kRandom:
        random.Add(round);
        break;
      default:
        break;
    }
    if (round.hit == false) ++misses;
    std::this_thread::sleep_for(std::chrono::nanoseconds(settle_ns_));
  }
  void OnToken(SequenceId, const EmittedToken&) override {}
  void OnFinish(SequenceId, FinishReason, const RequestStats&) override {}

  ProposalCounter draft;
  ProposalCounter ngram;
  ProposalCounter random;
  int misses = 0;

 private:
  std::int64_t settle_ns_;
};

Status Generate(Engine& engine, const CalibrationTask& task, const SpeculationPlan& plan,
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

// Every candidate the draft has, after its own proposals.
SpeculationPlan WidePlan(int lookahead) {
  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = lookahead, .fallback = Fallback::kJit};
  plan.primary = UniformFanout(kMaxFanout, lookahead);
  plan.after_fallback = plan.primary;
  return plan;
}

// As good as nothing after its own proposals, so that the fallback is needed about every other
// round, and every candidate after the fallback's.
SpeculationPlan FallbackPlan(int lookahead, Fallback fallback) {
  SpeculationPlan plan = WidePlan(lookahead);
  plan.fallback = fallback;
  plan.primary = UniformFanout(0, lookahead);
  plan.primary.at.back() = 1;
  return plan;
}

}  // namespace

void ProposalCounter::Add(const RoundRecord& round) {
  const int proposed = round.proposal->size();
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

std::vector<double> ProposalCounter::Lookups::HitRates() const {
  std::vector<double> rates;
  int hits = 0;
  for (const int at : at_rank) {
    hits += at;
    rates.push_back(count == 0 ? 0 : static_cast<double>(hits) / count);
  }
  return rates;
}

ProposerMeasurement ProposalCounter::Measurement() const {
  ProposerMeasurement measurement;
  if (rounds_ == 0) return measurement;
  measurement.rounds = rounds_;
  for (std::size_t k = 0; k < trials_.size() && trials_[k] > 0; ++k) {
    measurement.acceptance.push_back(static_cast<double>(accepted_[k]) / trials_[k]);
  }
  measurement.hit_partial = partial_.HitRates();
  measurement.hit_full = full_.HitRates();
  return measurement;
}

Result<CalibratedSetting> MeasureRates(Engine& engine, const CalibrationTask& task) {
  CalibratedSetting setting;
  setting.temperature = task.sampling.temperature;
  RateRecorder own(task.settle_ns);
  FT_RETURN_IF_ERROR(Generate(engine, task, WidePlan(task.lookahead), &own));
  setting.draft = own.draft.Measurement();
  for (const Fallback fallback : {Fallback::kNgram, Fallback::kRandom}) {
    RateRecorder other(task.settle_ns);
    FT_RETURN_IF_ERROR(Generate(engine, task, FallbackPlan(task.lookahead, fallback), &other));
    const bool ngram = fallback == Fallback::kNgram;
    const ProposalCounter& counter = ngram ? other.ngram : other.random;
    ProposerMeasurement& measurement = ngram ? setting.ngram : setting.random;
    measurement = counter.Measurement();
    // Proposals follow misses: how many of those had one.
    if (other.misses > 0) {
      measurement.coverage = std::min(1.0, static_cast<double>(counter.rounds()) / other.misses);
    }
  }
  return setting;
}

Result<CalibratedSetting> MeasureSaguaro(Engine& engine, const CalibrationTask& task,
                                         double saguaro_c) {
  SpeculationPlan plan = WidePlan(task.lookahead);
  plan.primary = UniformFanout(kSaguaroFanout, task.lookahead);
  plan.after_fallback = plan.primary;
  plan.saguaro_c = static_cast<float>(saguaro_c);
  RateRecorder recorder(task.settle_ns);
  FT_RETURN_IF_ERROR(Generate(engine, task, plan, &recorder));
  CalibratedSetting setting{.temperature = task.sampling.temperature,
                            .verifier = std::string(VerificationName(Verification::kRejection)),
                            .saguaro_c = saguaro_c};
  setting.draft = recorder.draft.Measurement();
  if (setting.draft.measured()) {
    setting.draft.hit_partial.resize(kSaguaroFanout);
    setting.draft.hit_full.resize(kSaguaroFanout);
  }
  return setting;
}

Status MeasureOverheads(Engine& engine, const CalibrationTask& task, CostModel* times) {
  RateRecorder silent(0);
  engine.ResetStats();
  FT_RETURN_IF_ERROR(Generate(engine, task, {.mode = Mode::kAr}, &silent));
  const auto us = [](const Histogram& histogram) {
    return static_cast<double>(histogram.Quantile(0.5)) / 1e3;
  };
  times->host_us = us(engine.stats().host);
  const double context = static_cast<double>(task.prompts[0].size() + task.stop.max_tokens / 2);
  const double alone = us(engine.stats().target) / times->target.us(1, context);

  SpeculationPlan plan{.mode = Mode::kSsd, .lookahead = task.lookahead};
  engine.ResetStats();
  FT_RETURN_IF_ERROR(Generate(engine, task, CompletePlan(plan), &silent));
  const EngineStats& stats = engine.stats();
  const double rows = stats.passes == 0 ? 1 : static_cast<double>(stats.rows) / stats.passes;
  const double beside = us(stats.target) / times->target.us(rows, context);
  times->target_contention = std::clamp(beside / alone, 1.0, 3.0);
  return {};
}

}  // namespace foretoken
