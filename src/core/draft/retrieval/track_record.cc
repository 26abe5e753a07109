#include "core/draft/retrieval/track_record.h"

namespace foretoken {

void TrackRecord::KeepWorthwhile(std::span<const CandidateScore> scores,
                                 std::span<const double> prices, int max_depth, int max_nodes,
                                 Proposal* proposal) const {
  const double least = std::ranges::min(prices);
  std::array<std::int8_t, kMaxProposal + 1> depth{};
  int kept = 0;
  int best = 0;
  double gain = 0;
  double best_gain = 0;
  proposal->KeepIf([&](int node, int parent) {
    depth[node] = static_cast<std::int8_t>(depth[parent] + 1);
    const double chance = Chance(scores[node - 1]);
    if (kept == max_nodes || depth[node] > max_depth || chance < least) return false;
    gain += chance - prices[std::min(Size(kept), prices.size() - 1)];
    ++kept;
    if (gain >= best_gain) {
      best = kept;
      best_gain = gain;
    }
    return true;
  });
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
    scores_.push_back(scores[i]);
    depth_ = std::max(depth_, Size(proposal.Depth(i + 1)));
  }
}

void Forecast::Settle(std::span<const Token> tokens, TrackRecord* record) {
  if (!pending() || tokens.size() < position_ + depth_) return;
  std::array<bool, kMaxProposal + 1> came_true{true};
  for (int i = 0; i < proposal_.size(); ++i) {
    const auto node = Size(i) + 1;
    const auto place = position_ + proposal_.Depth(i + 1) - 1;
    came_true[node] = came_true[proposal_.parents[i]] && tokens[place] == proposal_.tokens[i];
    record->Add(scores_[i], came_true[node]);
  }
  scores_.clear();
}

}  // namespace foretoken
