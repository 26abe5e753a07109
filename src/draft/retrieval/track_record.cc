#include "draft/retrieval/track_record.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace foretoken {
namespace {

constexpr double kKeep = 0.998;
// How many candidates the pseudo-probability counts for.
constexpr double kPriorSeen = 8;

}  // namespace

std::size_t TrackRecord::BinOf(CandidateScore score) {
  FT_CHECK(score.kind >= 0 && score.kind < kKinds, "kind {}", score.kind);
  const double halvings = -2 * std::log2(std::max(score.probability, 1e-9));
  const int bin = std::clamp(static_cast<int>(halvings), 0, kBins - 1);
  return static_cast<std::size_t>(score.kind * kBins + bin);
}

double TrackRecord::Chance(CandidateScore score) const {
  const Tally& tally = tallies_[BinOf(score)];
  return (kPriorSeen * score.probability + tally.came_true) / (kPriorSeen + tally.seen);
}

void TrackRecord::Add(CandidateScore score, bool came_true) {
  Tally& tally = tallies_[BinOf(score)];
  tally.seen = kKeep * tally.seen + 1;
  tally.came_true = kKeep * tally.came_true + (came_true ? 1 : 0);
}

void TrackRecord::KeepWorthwhile(std::span<const CandidateScore> scores,
                                 std::span<const double> prices, int max_depth, int max_nodes,
                                 Proposal* proposal) const {
  const double least = std::ranges::min(prices);
  std::array<std::int8_t, kMaxProposal + 1> place{};  // Of each node among the kept; 0: dropped.
  std::array<std::int8_t, kMaxProposal + 1> depth{};
  int kept = 0;
  int best = 0;
  double gain = 0;
  double best_gain = 0;
  for (int i = 0; i < proposal->size() && kept < max_nodes; ++i) {
    const auto parent = static_cast<std::size_t>(proposal->parents[i]);
    const auto node = static_cast<std::size_t>(i) + 1;
    if (parent != 0 && place[parent] == 0) continue;
    depth[node] = static_cast<std::int8_t>(depth[parent] + 1);
    const double chance = Chance(scores[static_cast<std::size_t>(i)]);
    if (depth[node] > max_depth || chance < least) continue;
    gain += chance - prices[std::min(static_cast<std::size_t>(kept), prices.size() - 1)];
    proposal->tokens[kept] = proposal->tokens[i];
    proposal->parents[kept] = place[parent];
    place[node] = static_cast<std::int8_t>(++kept);
    if (gain < best_gain) continue;
    best = kept;
    best_gain = gain;
  }
  proposal->Truncate(best);
  if (best == 0) proposal->source = ProposalSource::kNone;
}

void Forecast::Make(std::size_t position, const Proposal& proposal,
                    std::span<const CandidateScore> scores) {
  position_ = position;
  depth_ = 0;
  proposal_ = proposal;
  scores_.clear();
  for (int i = 0; i < proposal.size(); ++i) {
    scores_.push_back(scores[static_cast<std::size_t>(i)]);
    depth_ = std::max(depth_, static_cast<std::size_t>(proposal.Depth(i + 1)));
  }
}

void Forecast::Settle(std::span<const Token> tokens, TrackRecord* record) {
  if (!pending() || tokens.size() < position_ + depth_) return;
  std::array<bool, kMaxProposal + 1> came_true{true};
  for (int i = 0; i < proposal_.size(); ++i) {
    const auto node = static_cast<std::size_t>(i) + 1;
    const auto place = position_ + static_cast<std::size_t>(proposal_.Depth(i + 1)) - 1;
    came_true[node] = came_true[static_cast<std::size_t>(proposal_.parents[i])] &&
                      tokens[place] == proposal_.tokens[i];
    record->Add(scores_[i], came_true[node]);
  }
  scores_.clear();
}

}  // namespace foretoken
