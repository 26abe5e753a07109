#include <algorithm>
#include <cmath>

#include "planner/online_planner.h"

namespace foretoken {
namespace {

// What is observed halves in some 500 observations. What is not drifts back to its prior in some
// 2,000 rounds: a mode that lost is tried again.
constexpr double kKeepProposal = 0.9985;
constexpr double kKeepPass = 0.998;
constexpr double kKeepUnobserved = 0.9996;
// A wait this many times as long as expected was held up by something else: on a virtual machine
// one of 50 us may take 4 ms.
constexpr double kOutlier = 2;
// A sequence's own acceptance: the last few dozen tokens.
constexpr double kKeepSequence = 0.98;
// Tokens that predictions count for beside measurements.
constexpr double kCorrectionPrior = 48;
constexpr double kLeastCorrection = 0.25;
constexpr double kMostCorrection = 2.0;
// The debt that choosing modes may run up: this share of the time, and a few plain rounds to begin
// with.
constexpr double kExploringShare = 0.005;
constexpr double kExploringRounds = 8;
// What is kept of gains: text that is harder for a while must not end what pays. (Without it 10 %
// of runs of 2,000 rounds at T = 0.7 came to their limit, where speculation is 1.25 times as fast.)
constexpr double kCreditRounds = 64;
// How far below its limit a debt must be before anything is tried again: in the first rounds after
// a change of mode, in which the draft reads the context, two or three plain ones are lost.
// (Without it one of those runs tried 11 times in vain and decoded plainly to its end.)
constexpr double kAttemptRounds = 3;
// While the draft reads the contexts a round is no measure of its mode's speed: not until two
// rounds from the first that verifies something: the tenth, where 16 contexts of 128 are read.
constexpr int kSettlingRounds = 2;
// A pass this many times as long beside the draft as is believed was held up by something else. (A
// trial's few passes with a hiccup of 60 ms among them made it 1.12 for the rest of the run.)
constexpr double kContentionOutlier = 1.3;
constexpr double kLeastContention = 0.8;
constexpr int kIdlePasses = 8;
// It is the machine's, and may have been seen in a slow spell of seconds. (Forgotten by rounds as
// slowly as acceptance is, six passes of 70 ms kept SSD out for the rest of a run.)
constexpr double kForgetContentionUs = 5e6;

Workload LoadOf(const PassObservation& pass) {
  return {.batch = pass.sequences, .context = pass.context};
}

// Whether the draft has read the contexts, as far as the proposals tell: of most sequences, or of
// the one that tries a mode beside others.
bool HasBegun(const PassObservation& pass) {
  const int proposed = pass.rows - pass.sequences;
  if (!pass.mode.has_value()) return proposed > 0;
  return pass.mode != Mode::kSsd || 2 * proposed >= pass.sequences;
}

}  // namespace

OnlinePlanner::Source* OnlinePlanner::SourceOf(ProposalSource source) {
  switch (source) {
    case ProposalSource::kDraft:
    case ProposalSource::kCache:
    case ProposalSource::kJit:
      return &draft_;
    case ProposalSource::kNgram:
      return &ngram_;
    case ProposalSource::kRetrieval:
      return &retrieval_;
    case ProposalSource::kRandom:
      return &random_;
    case ProposalSource::kNone:
      break;
  }
  return nullptr;
}

void OnlinePlanner::Source::Fade(double keep) {
  acceptance.Fade(keep);
  partial.Fade(keep);
  full.Fade(keep);
  coverage.Fade(keep);
}

void OnlinePlanner::Progress::Fade(double keep) {
  tokens *= keep;
  us *= keep;
  predicted_tokens *= keep;
}

double OnlinePlanner::PassUs(double rows, const Workload& load) const {
  return target_.us(rows, load.context) + prior_.FurtherSequencesUs(load.batch, load.context);
}

double OnlinePlanner::DraftingUs(const PassObservation& pass, const Workload& load) const {
  if (pass.mode != Mode::kSd) return 0;
  return pass.lookahead * draft_on_target_.us(load.batch, load.context);
}

double OnlinePlanner::UsPerSequence(const PassObservation& pass, const Workload& load) const {
  const double rows = static_cast<double>(pass.rows) / pass.sequences * load.batch;
  return (PassUs(rows, load) + DraftingUs(pass, load) + host_us_.value()) / load.batch;
}

// The round's time if the pass took what is expected of it. How much longer it did says nothing
// about its mode: the estimated times follow it, for all modes. (When that counted too, every
// slower second of the machine made the mode of that second look slow for long.)
double OnlinePlanner::UsualRoundUs(const PassObservation& pass) const {
  const double busy = pass.draft_busy ? contention_.At(pass.rows) : 1;
  const double expected = busy * PassUs(pass.rows, LoadOf(pass));
  const double drafting = DraftingUs(pass, LoadOf(pass));
  return expected + std::min(pass.wait_us, kOutlier * std::max(expected, drafting)) +
         std::min(pass.host_us, kOutlier * host_us_.value() + expected);
}

void OnlinePlanner::KeepAccounts(const PassObservation& pass, double round_us) {
  const double plain_round_us = PassUs(pass.sequences, LoadOf(pass)) + host_us_.value();
  if (pass.mode != Mode::kAr) {
    const double lost_us = round_us - plain_round_us * pass.tokens / pass.sequences;
    debt_us_ = std::max(debt_us_ + lost_us, -kCreditRounds * plain_round_us);
  }
  const double limit = kExploringShare * now_us_ + kExploringRounds * plain_round_us;
  const double room = indebted_ ? kAttemptRounds * plain_round_us : 0;
  indebted_ = debt_us_ > limit - room;
}

void OnlinePlanner::ObserveContention(const PassObservation& pass, double pass_us) {
  contention_.Fade(kKeepPass);
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

void OnlinePlanner::ObservePass(const PassObservation& pass) {
  now_us_ += pass.rounds * (pass.pass_us + pass.wait_us + pass.host_us);
  for (Source* source : {&draft_, &ngram_, &retrieval_, &random_}) source->Fade(kKeepUnobserved);
  if (HasBegun(pass)) rounds_since_switch_ = std::max(rounds_since_switch_, 0);
  const bool settled = ++rounds_since_switch_ > kSettlingRounds;
  if (settled) ++rounds_since_trial_;
  const double round_us = UsualRoundUs(pass);
  if (pass.chosen) KeepAccounts(pass, round_us);
  // Without what further sequences cost beyond their rows.
  const double pass_us = std::max(
      pass.pass_us - prior_.FurtherSequencesUs(pass.sequences, pass.context), pass.pass_us / 4);
  target_.Fade(kKeepPass);
  if (pass.draft_busy) {
    ObserveContention(pass, pass_us);
  } else {
    const double forgotten = pass.rounds * (pass.pass_us + pass.wait_us) / kForgetContentionUs;
    contention_.Fade(std::clamp(1 - forgotten, 0.5, kKeepUnobserved));
    target_.Add(pass.rows, pass.context, pass_us);
    // Until now contention was seen beside the times measured before serving.
    if (++idle_passes_ == kIdlePasses) contention_ = FirstContention(prior_);
  }
  host_us_.Fade(kKeepPass);
  host_us_.Add(std::min(pass.host_us, kOutlier * host_us_.value() + 10));
  if (!pass.mode.has_value()) return;
  if (pass.mode == Mode::kSd && pass.lookahead > 0 && settled) {
    draft_on_target_.Fade(kKeepPass);
    draft_on_target_.Add(pass.sequences, pass.context, pass.wait_us / pass.lookahead);
  }
  if (pass.predicted == 0 || (pass.mode != Mode::kAr && !settled)) return;
  Progress& progress = progress_[static_cast<std::size_t>(*pass.mode)];
  for (Progress& any : progress_) any.Fade(&any == &progress ? kKeepPass : kKeepUnobserved);
  progress.rounds += pass.rounds;
  progress.tokens += pass.tokens;
  progress.us += round_us;
  // The context has grown since the prediction, and sequences have come or gone. (Not counted, that
  // favoured modes that are looked at more often than plain decoding, by 8 to 20 % where attention
  // is a large part of a pass.)
  const double faster = UsPerSequence(pass, pass.predicted_at) / UsPerSequence(pass, LoadOf(pass));
  progress.predicted_tokens += pass.predicted * faster * round_us / 1e6;
}

void OnlinePlanner::ObserveDraft(double rows, double context, double us) {
  draft_alone_.Fade(kKeepPass);
  draft_alone_.Add(rows, context, us / prior_.draft_contention);
}

void OnlinePlanner::ObserveProposal(const ProposalObservation& proposal,
                                    SequenceEstimate* sequence) {
  ++sequence->rounds;
  sequence->trials *= kKeepProposal;
  sequence->accepted *= kKeepProposal;
  Source* source = SourceOf(proposal.source);
  if (source != nullptr) source->Fade(kKeepProposal);
  if (proposal.mode == Mode::kNgram) ngram_.coverage.Add(proposal.proposed > 0 ? 1 : 0);
  if (proposal.mode == Mode::kSssd) retrieval_.coverage.Add(proposal.proposed > 0 ? 1 : 0);
  if (source != nullptr && proposal.proposed > 0) {
    source->acceptance.Add(proposal.proposed, proposal.accepted);
    if (source == &draft_) {
      const int trials = std::min(proposal.proposed, proposal.accepted + 1);
      for (int i = 0; i < trials; ++i) {
        sequence->trials = kKeepSequence * sequence->trials + 1;
        sequence->accepted = kKeepSequence * sequence->accepted + (i < proposal.accepted ? 1 : 0);
      }
    }
  }
  if (proposal.hit.has_value()) {
    // After an empty proposal the draft's own candidates are all there is.
    Source& verified = source != nullptr ? *source : draft_;
    const bool full = proposal.accepted == proposal.proposed;
    (full ? verified.full : verified.partial).Add(proposal.fanout, *proposal.hit);
  }
}

double OnlinePlanner::Progress::correction() const {
  const double ratio = (kCorrectionPrior + tokens) / (kCorrectionPrior + predicted_tokens);
  return std::clamp(ratio, kLeastCorrection, kMostCorrection);
}

double OnlinePlanner::Progress::doubt() const { return 1 / std::sqrt(kCorrectionPrior + tokens); }

}  // namespace foretoken
