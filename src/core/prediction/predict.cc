#include "core/prediction/predict.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/numbers/integers.h"
#include "core/prediction/anytime_cache.h"
#include "core/prediction/fanout_solver.h"

namespace foretoken {
namespace {

constexpr double kUsPerSecond = 1e6;

double ProposalRows(const ProposerModel& proposer, int lookahead) {
  return proposer.mean_rows > 0 ? proposer.mean_rows : lookahead;
}

// Everything of a round but proposing, with `rows` rows in all.
double PassUs(const CostModel& model, const TimeTable& passes, const Workload& load, double rows) {
  return passes.us(rows, load.context) + model.FurtherSequencesUs(load.batch, load.context) +
         model.host_us + model.host_row_us * rows;
}

double PassUs(const CostModel& model, const Workload& load, double rows) {
  return PassUs(model, model.target, load, rows);
}

// The same while the draft works too.
double PassBesideDraftUs(const CostModel& model, const Workload& load, double rows) {
  const TimeTable& beside = model.target_beside_draft;
  return beside.rows().empty() ? model.target_contention * PassUs(model, load, rows)
                               : PassUs(model, beside, load, rows);
}

// The mean over how many of the batch's sequences have a proposal of `rows` rows: a pass over the
// mean number of rows would be shorter (prompt lookup, one sequence, K = 7: by a fifth).
double MeanPassUs(const CostModel& model, const Workload& load, double coverage, double rows) {
  constexpr int kLargeBatch = 32;  // The mean is then close, and small powers stay above 0.
  if (load.batch > kLargeBatch || coverage > 0.999) {
    return PassUs(model, load, load.batch * (1 + coverage * rows));
  }
  double p = std::pow(1 - coverage, load.batch);  // Binomial, from nobody on.
  double mean = 0;
  for (int n = 0; n <= load.batch; ++n) {
    mean += p * PassUs(model, load, load.batch + n * rows);
    p *= coverage / (1 - coverage) * (load.batch - n) / (n + 1);
  }
  return mean;
}

// A proposer that runs between two target passes: SD, prompt lookup, retrieval.
Prediction PredictSynchronous(const CostModel& model, const ProposerModel& proposer, int lookahead,
                              double wait_us, const Workload& load) {
  const NodeDistribution nodes = OutcomeNodes(proposer.acceptance, lookahead);
  Prediction prediction;
  const double rows = ProposalRows(proposer, lookahead);
  const double accepted = std::min(ExpectedTokens(nodes) - 1, rows);
  prediction.tokens_per_round = 1 + proposer.coverage * accepted;
  prediction.target_rows = 1 + proposer.coverage * rows;
  prediction.wait_us = wait_us;
  prediction.round_us = wait_us + MeanPassUs(model, load, proposer.coverage, rows);
  return prediction;
}

// How long a draft on the target's device takes.
double DraftingUs(const CostModel& model, DrafterId draft, int lookahead, const Workload& load) {
  const DraftTimes& times = model.drafts[draft];
  const NodeDistribution nodes = OutcomeNodes(model.proposers[draft].acceptance, lookahead);
  if (times.pass.several()) {
    // Rows of the tokens that were accepted last; where the states of these are what is read, next
    // to nothing is computed of them.
    const double accepted = times.pass.from_root ? 0 : ExpectedTokens(nodes) - 1;
    return times.on_target.us(load.batch * (accepted + times.pass.Rows(lookahead)), load.context);
  }
  // K passes with a row of each sequence; after a full acceptance the first also computes the last
  // token of the proposal, which was never an input.
  const double full = nodes[lookahead];
  return times.on_target.us(load.batch * (1 + full), load.context) +
         (lookahead - 1) * times.on_target.us(load.batch, load.context);
}

// The walk over what a sequence verifies. States 0 .. K: a chain of that many tokens from the
// cache; kFallback: a proposal of the fallback; kNothing: a miss for which it had none.
class SsdWalk {
 public:
  SsdWalk(const CostModel& model, const SpeculationPlan& plan, const Workload& load)
      : model_(model),
        plan_(plan),
        load_(load),
        lookahead_(plan.lookahead),
        fallback_(model.proposer(plan.fallback)),
        states_(plan.lookahead + 3) {}

  Prediction Run() {
    // Other sequences' rows make passes longer, which changes how much is prepared meanwhile: that
    // converges in two rounds.
    double other_rows = 1 + lookahead_;
    Prediction prediction;
    for (int i = 0; i < (load_.batch > 1 ? 3 : 1); ++i) {
      Converge(other_rows);
      prediction = Weigh();
      if (std::abs(prediction.target_rows - other_rows) < kSameRows * other_rows) break;
      other_rows = prediction.target_rows;
    }
    return prediction;
  }

 private:
  struct State {
    bool known = false;
    double tokens = 1;
    double rows = 1;
    double pass_us = 0;
    CacheForecast forecast;
  };
  using Distribution = std::array<double, kMaxProposal + 3>;

  int fallback_state() const { return lookahead_ + 1; }
  int nothing_state() const { return lookahead_ + 2; }

  // States that are entered more rarely than this matter to nobody.
  static constexpr double kRare = 1e-4;
  static constexpr int kSteps = 64;
  static constexpr double kConverged = 1e-7;
  static constexpr double kSameRows = 0.01;

  const State& Know(int index, double other_rows) {
    State& state = known_[index];
    if (state.known) return state;
    state.known = true;
    const bool cached = index <= lookahead_;
    const bool fallback = index == fallback_state();
    const bool jit = fallback && plan_.fallback == Fallback::kJit;
    const DraftPassShape& passes = model_.first_draft().pass;
    const int longest = jit ? passes.Longest(lookahead_) : lookahead_;
    const int length = cached ? index : fallback ? longest : 0;
    const ProposerModel& proposer = fallback ? *fallback_ : model_.draft_model();
    const NodeDistribution nodes = OutcomeNodes(proposer.acceptance, length);
    state.tokens = ExpectedTokens(nodes);
    state.rows = 1 + (fallback ? ProposalRows(proposer, length) : length);
    state.pass_us = PassBesideDraftUs(model_, load_, state.rows + (load_.batch - 1) * other_rows);
    // A draft's own chain is ranked up to its last token; anybody else's is new to the draft.
    // Where a pass says several tokens, what is verified gets rows of its own before it has
    // outcomes, or is ranked by a block at its root.
    const bool own = (cached || &proposer == &model_.draft_model()) && !passes.several();
    const CacheRace race{.model = &model_,
                         .batch = load_.batch,
                         .context = load_.context,
                         .us = state.pass_us,
                         .lookahead = lookahead_,
                         .trunk_rows = own                ? 1
                                       : passes.from_root ? passes.Rows(lookahead_)
                                                          : 1 + length,
                         .ranked = own};
    state.forecast = ForecastCache(
        race, Shape(cached ? plan_.primary : plan_.after_fallback, length), nodes, proposer.curves);
    return state;
  }

  // The plan's fan-outs for a proposal shorter than K.
  static FanoutShape Shape(const FanoutShape& full, int length) {
    FanoutShape shape = full;
    shape.at.resize(length + 1);
    shape.at[length] = static_cast<std::uint8_t>(full.At(length, length));
    return shape;
  }

  // The chance that the fallback proposes: always, or for a draft that works just in time, if no
  // other sequence would be held up.
  double Coverage(double miss) const {
    if (fallback_ == nullptr) return 0;
    const bool jit = plan_.fallback == Fallback::kJit;
    return jit ? std::pow(miss, load_.batch - 1) : fallback_->coverage;
  }

  void Converge(double other_rows) {
    known_ = {};
    distribution_ = {};
    distribution_[lookahead_] = 1;
    miss_ = 0;
    for (int step = 0; step < kSteps; ++step) {
      Distribution next{};
      double miss = 0;
      for (int index = 0; index < states_; ++index) {
        if (distribution_[index] < kRare) {
          next[nothing_state()] += distribution_[index];
          continue;
        }
        const CacheForecast& forecast = Know(index, other_rows).forecast;
        for (int n = 1; n <= lookahead_; ++n) next[n] += distribution_[index] * forecast.chain[n];
        miss += distribution_[index] * forecast.chain[0];
      }
      const double covered = miss * Coverage(miss);
      next[fallback_state()] += covered;
      next[nothing_state()] += miss - covered;
      double change = std::abs(miss - miss_);
      for (int index = 0; index < states_; ++index) {
        change += std::abs(next[index] - distribution_[index]);
      }
      distribution_ = next;
      miss_ = miss;
      if (change < kConverged) break;
    }
  }

  Prediction Weigh() const {
    Prediction prediction{.tokens_per_round = 0, .target_rows = 0};
    double primary = 0;
    double weight = 0;
    for (int index = 0; index < states_; ++index) {
      const State& state = known_[index];
      if (!state.known) continue;
      weight += distribution_[index];
      prediction.tokens_per_round += distribution_[index] * state.tokens;
      prediction.target_rows += distribution_[index] * state.rows;
      prediction.round_us += distribution_[index] * state.pass_us;
      prediction.hit_rate += distribution_[index] * state.forecast.hit();
      if (index > lookahead_) continue;
      primary += distribution_[index];
      prediction.hit_primary += distribution_[index] * state.forecast.hit();
    }
    const double after_fallback = prediction.hit_rate - prediction.hit_primary;
    prediction.hit_fallback = weight > primary ? after_fallback / (weight - primary) : 0;
    prediction.hit_primary = primary > 0 ? prediction.hit_primary / primary : 0;
    prediction.tokens_per_round /= weight;
    prediction.target_rows /= weight;
    prediction.round_us /= weight;
    prediction.hit_rate /= weight;
    prediction.wait_us = FallbackUs();
    prediction.round_us += prediction.wait_us;
    return prediction;
  }

  // Mean time that the batch waits for fallbacks, per round.
  double FallbackUs() const {
    if (fallback_ == nullptr) return 0;
    if (plan_.fallback == Fallback::kJit) {
      const DraftTimes& draft = model_.first_draft();
      const int rows = load_.batch * draft.pass.Rows(lookahead_);
      const double pass_us = draft.apart.us(rows, load_.context) + rows * model_.draft_model().us;
      return std::pow(miss_, load_.batch) * draft.pass.Count(lookahead_) * pass_us;
    }
    return load_.batch * miss_ * fallback_->us;
  }

  const CostModel& model_;
  const SpeculationPlan& plan_;
  const Workload& load_;
  const int lookahead_;
  const ProposerModel* fallback_;
  const int states_;
  std::array<State, kMaxProposal + 3> known_;
  Distribution distribution_{};
  double miss_ = 0;
};

// All but the tokens per second.
Prediction PredictRound(const CostModel& model, const SpeculationPlan& plan, const Workload& load) {
  if (!plan.mode.drafts()) return {.round_us = PassUs(model, load, load.batch)};
  if (plan.mode.during()) return SsdWalk(model, plan, load).Run();
  const ProposerModel& proposer = *model.proposer(plan.mode);
  if (!model.DraftsByPasses(plan.mode)) {
    return PredictSynchronous(model, proposer, plan.lookahead, load.batch * proposer.us, load);
  }
  const DrafterId draft = plan.mode.drafter;
  const int lookahead = model.drafts[draft].pass.Longest(plan.lookahead);
  return PredictSynchronous(model, proposer, lookahead, DraftingUs(model, draft, lookahead, load),
                            load);
}

}  // namespace

bool CanPredict(const CostModel& model, const SpeculationPlan& plan) {
  if (model.target.rows().empty() || plan.tree_width != 1) return false;
  if (!plan.mode.drafts()) return plan.mode == Mode::kAr;
  const ProposerModel* proposer = model.proposer(plan.mode);
  if (proposer == nullptr || !proposer->measured() || plan.lookahead < 1) return false;
  if (model.DraftsOnTarget(plan.mode))
    return !model.drafts[plan.mode.drafter].on_target.rows().empty();
  if (!plan.mode.during()) return true;
  const ProposerModel* fallback = model.proposer(plan.fallback);
  const auto fits = [&plan](const FanoutShape& shape) {
    return shape.at.size() == Size(plan.lookahead) + 1;
  };
  return plan.fallback != Fallback::kAuto && (fallback == nullptr || fallback->measured()) &&
         fits(plan.primary) && fits(plan.after_fallback);
}

Prediction Predict(const CostModel& model, const SpeculationPlan& plan, const Workload& load) {
  FT_CHECK(CanPredict(model, plan), "mode {} is not predictable", ModeName(plan.mode));
  FT_CHECK(load.batch >= 1 && load.context >= 0);
  Prediction prediction = PredictRound(model, plan, load);
  prediction.tokens_per_second = load.batch * prediction.tokens_per_round * kUsPerSecond /
                                 prediction.round_us * model.correction[plan.mode];
  return prediction;
}

}  // namespace foretoken
