#include "core/planner/learned_model.h"

#include <algorithm>

#include "core/planner/decay_rates.h"
#include "core/prediction/row_price.h"

namespace foretoken {
namespace {

// A wait this many times as long as expected was held up by something else: on a virtual machine
// one of 50 us may take 4 ms.
constexpr double kOutlier = 2;
// A sequence's own acceptance: the last few dozen tokens, beside so many of the mean of all
// sequences.
constexpr double kKeepSequence = 0.98;
constexpr double kSequencePrior = 24;
// Priors where the draft is idle and nothing was measured.
constexpr double kContention = 1.05;
constexpr double kContentionWeight = 8;
// A pass this many times as long beside the draft as is believed was held up by something else. (A
// trial's few passes with a hiccup of 60 ms among them made it 1.12 for the rest of the run.)
constexpr double kContentionOutlier = 1.3;
constexpr double kLeastContention = 0.8;
constexpr int kIdlePasses = 8;
// It is the machine's, and may have been seen in a slow spell of seconds. (Forgotten by rounds as
// slowly as acceptance is, six passes of 70 ms kept SSD out for the rest of a run.)
constexpr double kForgetContentionUs = 5e6;
// So many standard deviations better than is believed is what may be hoped.
constexpr double kOptimism = 2;
constexpr double kContentionDoubt = 0.04;  // The standard deviation of its prior.
constexpr double kRowsDoubt = 0.03;        // The same of how row counts compare.

double Tilt(const DecayingSum& accepted, double mean) {
  return mean > 0 ? accepted.MeanWith(mean, kSequencePrior) / mean : 1;
}

TimeTable OrNothing(const TimeTable& measured) {
  return measured.rows().empty() ? TimeTable::Line(1, 0) : measured;
}

}  // namespace

void LearnedModel::Source::Decay(double keep) {
  acceptance.Decay(keep);
  partial.Decay(keep);
  full.Decay(keep);
  coverage.Decay(keep);
  rows.Decay(keep);
}

ProposerModel LearnedModel::Source::Describe(double mean_rows) const {
  return {.acceptance = {},
          .coverage = coverage.value(),
          .mean_rows = mean_rows,
          .us = us.value(),
          .curves = {.partial = partial.Curve(), .full = full.Curve()}};
}

void LearnedModel::Source::Hope(double optimism, ProposerModel* model) const {
  for (double& chance : model->acceptance) {
    chance = std::min(1.0, chance + optimism * acceptance.doubt());
  }
  model->curves = {.partial = partial.Curve(optimism), .full = full.Curve(optimism)};
}

RowRatios LearnedModel::FirstContention(const CostModel& prior) {
  return {prior.target.rows(), std::max(kContention, prior.target_contention), kContentionWeight};
}

ByDrafter<LearnedModel::Source> LearnedModel::FirstSources(const CostModel& prior) {
  ByDrafter<Source> sources;
  for (const DrafterId id : kDrafterIds) {
    sources[id].acceptance = AcceptanceEstimate(InfoOf(id).usual_acceptance);
    sources[id].us = DecayingMean(prior.proposers[id].us, 1);
    if (!prior.DraftsByPasses({Schedule::kBefore, id})) continue;
    sources[id].coverage = DecayingMean(1, 1e9);  // It always has something to say.
    sources[id].apart = TimeEstimate(OrNothing(prior.drafts[id].apart));
    sources[id].on_target = TimeEstimate(OrNothing(prior.drafts[id].on_target));
  }
  return sources;
}

LearnedModel::LearnedModel(const CostModel& prior)
    : prior_(prior),
      target_(prior.target),
      contention_(FirstContention(prior)),
      host_us_(prior.host_us, 1),
      sources_(FirstSources(prior)) {}

double LearnedModel::PassUs(double rows, const Workload& load) const {
  return target_.us(rows, load.context) + prior_.FurtherSequencesUs(load.batch, load.context);
}

double LearnedModel::DraftingUs(const PassObservation& pass, const Workload& load) const {
  if (!pass.mode.has_value() || !prior_.DraftsOnTarget(*pass.mode)) return 0;
  const DrafterId draft = pass.mode->drafter;
  const DraftPassShape& passes = prior_.drafts[draft].pass;
  return passes.Count(pass.lookahead) *
         sources_[draft].on_target.us(load.batch * passes.Rows(pass.lookahead), load.context);
}

double LearnedModel::UsPerSequence(const PassObservation& pass, const Workload& load) const {
  const double rows = static_cast<double>(pass.rows) / pass.sequences * load.batch;
  return (PassUs(rows, load) + DraftingUs(pass, load) + host_us_.value()) / load.batch;
}

double LearnedModel::UsualRoundUs(const PassObservation& pass) const {
  const double busy = pass.draft_busy ? contention_.At(pass.rows) : 1;
  const double expected = busy * PassUs(pass.rows, pass.load());
  const double drafting = DraftingUs(pass, pass.load());
  return expected + std::min(pass.wait_us, kOutlier * std::max(expected, drafting)) +
         std::min(pass.host_us, kOutlier * host_us_.value() + expected);
}

double LearnedModel::PlainRoundUs(const Workload& load) const {
  return PassUs(load.batch, load) + host_us_.value();
}

double LearnedModel::ReadingUs(Mode current, Mode next, const Workload& load) const {
  if (!prior_.DraftsOnTarget(next) || current == next) return 0;
  const int rows = prior_.drafts[next.drafter].on_target.rows().back();
  return load.context * sources_[next.drafter].on_target.us(rows, load.context) / rows;
}

// (Sixteen sequences that changed to SD for 2 % had 20 to 40 tokens left each, and lost 4 %.)
double LearnedModel::RateFrom(Mode current, const RankedPlan& next, const Workload& load) const {
  const double reading_us = ReadingUs(current, next.plan.mode, load);
  return 1 / (1 / next.prediction.tokens_per_second + reading_us / 1e6 / load.tokens_left);
}

void LearnedModel::ObserveContention(const PassObservation& pass, double pass_us) {
  contention_.Decay(kKeepPass);
  double seen = pass_us / target_.us(pass.rows, pass.context);
  const double usual = contention_.At(pass.rows);
  // Nothing is faster beside the draft than alone: what is believed of passes alone is out of date.
  // (A machine that became 15 % faster while the draft worked seemed so only beside it, and SSD
  // that proposed next to nothing was kept for thousands of rounds.)
  if (usual < 1) {
    target_.Add(pass.rows, pass.context, pass_us);
    seen = std::max(seen, 1.0);
  }
  contention_.Add(pass.rows, std::clamp(seen, kLeastContention, kContentionOutlier * usual));
}

void LearnedModel::ObserveTimes(const PassObservation& pass, bool warmed_up) {
  // Without what further sequences cost beyond their rows.
  const double pass_us = std::max(
      pass.pass_us - prior_.FurtherSequencesUs(pass.sequences, pass.context), pass.pass_us / 4);
  target_.Decay(kKeepPass);
  if (pass.draft_busy) {
    ObserveContention(pass, pass_us);
  } else {
    const double forgotten = pass.rounds * (pass.pass_us + pass.wait_us) / kForgetContentionUs;
    contention_.Decay(std::clamp(1 - forgotten, 0.5, kKeepUnobserved));
    target_.Add(pass.rows, pass.context, pass_us);
    // Until now contention was seen beside the times measured before serving.
    if (++idle_passes_ == kIdlePasses) contention_ = FirstContention(prior_);
  }
  host_us_.Decay(kKeepPass);
  host_us_.Add(std::min(pass.host_us, kOutlier * host_us_.value() + 10));
  if (warmed_up) ObserveDrafting(pass);
}

void LearnedModel::ObserveDrafting(const PassObservation& pass) {
  if (!pass.mode.has_value() || !pass.mode->before() || pass.lookahead == 0) return;
  const DrafterId drafter = pass.mode->drafter;
  Source& source = sources_[drafter];
  if (!prior_.DraftsOnTarget(*pass.mode)) {
    ObserveAsking(drafter, std::min(pass.wait_us, pass.pass_us) / pass.sequences);
    return;
  }
  const DraftPassShape& passes = prior_.drafts[drafter].pass;
  source.on_target.Decay(kKeepPass);
  source.on_target.Add(pass.sequences * passes.Rows(pass.lookahead), pass.context,
                       pass.wait_us / passes.Count(pass.lookahead));
}

void LearnedModel::ObserveAsking(DrafterId drafter, double us) {
  DecayingMean& usual = sources_[drafter].us;
  usual.Decay(kKeepPass);
  usual.Add(us);
}

void LearnedModel::ObservePass(const PassObservation& pass, double round_us, bool warmed_up) {
  for (Source& source : sources_) source.Decay(kKeepUnobserved);
  if (pass.disturbed) return;
  ObserveTimes(pass, warmed_up);
  if (!pass.mode.has_value() || pass.predicted == 0) return;
  if (pass.mode != Mode::kAr && !warmed_up) return;
  // The context has grown since the prediction, and sequences have come or gone. (Not counted, that
  // favoured modes that are replanned more often than plain decoding, by 8 to 20 % where attention
  // is a large part of a pass.)
  const double faster = UsPerSequence(pass, pass.predicted_at) / UsPerSequence(pass, pass.load());
  records_.Add(*pass.mode, pass.rounds, pass.tokens, round_us,
               pass.predicted * faster * round_us / 1e6);
}

void LearnedModel::ObserveDraft(double rows, double context, double us) {
  TimeEstimate& apart = sources_[DrafterId::kModel].apart;
  apart.Decay(kKeepPass);
  apart.Add(rows, context, us / prior_.draft_contention);
}

void LearnedModel::ObserveProposal(const ProposalObservation& proposal,
                                   SequenceEstimate* sequence) {
  ++sequence->rounds;
  for (DecayingSum& accepted : sequence->accepted) accepted.Decay(kKeepProposal);
  const bool none = proposal.source == ProposalSource::kNone;
  const DrafterId proposer = prior_.TokensOf(proposal.source.drafter);
  Source* source = none ? nullptr : &sources_[proposer];
  Source* draft = &sources_[DrafterId::kModel];
  if (source != nullptr) source->Decay(kKeepProposal);
  const double proposes = proposal.proposed > 0 ? 1 : 0;
  if (proposal.mode.before() && !prior_.DraftsByPasses(proposal.mode)) {
    sources_[proposal.mode.drafter].coverage.Add(proposes);
  }
  if (source != nullptr && proposal.proposed > 0) {
    source->acceptance.Add(proposal.proposed, proposal.accepted);
    source->rows.Add(proposal.rows);
    if (IsDraftModel(proposer)) {
      DecayingSum& accepted = sequence->accepted[proposer];
      const int trials = std::min(proposal.proposed, proposal.accepted + 1);
      for (int i = 0; i < trials; ++i) {
        accepted.Decay(kKeepSequence);
        accepted.Add(i < proposal.accepted ? 1 : 0);
      }
    }
  }
  if (proposal.hit.has_value()) {
    // After an empty proposal the draft's own candidates are all there is.
    Source& verified = source != nullptr ? *source : *draft;
    const bool full = proposal.accepted == proposal.proposed;
    (full ? verified.full : verified.partial).Add(proposal.fanout, *proposal.hit);
  }
}

CostModel LearnedModel::Model(const SequenceEstimate& sequence) const {
  CostModel model = prior_;
  model.target = target_.Table();
  model.target_contention = std::max(1.0, contention_.mean().value());
  model.target_beside_draft = model.target.Scaled(contention_.All());
  model.host_us = host_us_.value();
  model.host_row_us = 0;
  for (const DrafterId id : kDrafterIds) {
    if (InfoOf(id).baseline && !InfoOf(id).fallback) continue;  // Nobody predicts it.
    const DrafterId proposer = prior_.TokensOf(id);
    const Source& source = sources_[id];
    const Source& tokens = sources_[proposer];
    const bool priced = PricesRows({Schedule::kBefore, id});
    ProposerModel& described = model.proposers[id];
    described = source.Describe(priced ? source.rows.value() : 0);
    described.acceptance = tokens.acceptance.Curve(
        IsDraftModel(proposer) ? Tilt(sequence.accepted[proposer], tokens.acceptance.mean()) : 1);
    DraftTimes& times = model.drafts[id];
    if (!times.apart.rows().empty()) times.apart = source.apart.Table();
    if (!times.on_target.rows().empty()) times.on_target = source.on_target.Table();
  }
  for (const Mode mode : kModes) model.correction[mode] = records_.correction(mode);
  return model;
}

// (With means alone a perfect draft was never tried at a batch of 4 where 28 rows cost 5.5 times 4.
// Without hope for hits and contention it was not at a batch of 16 where SSD gains 7 %.)
CostModel LearnedModel::Hoped(const CostModel& model) const {
  CostModel hoped = model;
  for (const DrafterId id : kDrafterIds) {
    if (InfoOf(id).baseline) continue;
    sources_[prior_.TokensOf(id)].Hope(kOptimism, &hoped.proposers[id]);
  }
  auto contention = contention_.All();
  const double less = kOptimism * contention_.mean().doubt(kContentionDoubt);
  for (double& ratio : contention) ratio = std::max(std::min(ratio, 1.0), ratio - less);
  hoped.target_beside_draft = hoped.target.Scaled(contention);
  for (const Mode mode : kModes) {  // A token less or more is a token's deviation.
    double& correction = hoped.correction[mode];
    const double doubt = records_.doubt(mode);
    correction = std::max(correction, std::min(1.0, correction + kOptimism * doubt));
  }
  return hoped;
}

CostModel LearnedModel::WithCheaperUnseenRows(const CostModel& model) const {
  CostModel cheaper = model;
  cheaper.target_beside_draft = model.target.Scaled(contention_.All(kRowsDoubt));
  return cheaper;
}

}  // namespace foretoken
