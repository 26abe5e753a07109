#include "ssd/speculated_sequence.h"

#include <algorithm>

namespace foretoken {
namespace {

SamplingParams SamplingOf(const OpenMessage& open) {
  SamplingParams sampling;
  sampling.temperature = open.temperature;
  sampling.top_k = open.top_k;
  sampling.top_p = open.top_p;
  sampling.min_p = open.min_p;
  sampling.repetition_penalty = open.repetition_penalty;
  sampling.frequency_penalty = open.frequency_penalty;
  sampling.presence_penalty = open.presence_penalty;
  sampling.seed = open.seed;
  return sampling;
}

}  // namespace

SpeculatedSequence::SpeculatedSequence(const OpenMessage& open, const ConfigureMessage& config,
                                       int vocabulary)
    : id(open.sequence),
      epoch(open.epoch),
      sampling(SamplingOf(open)),
      history(vocabulary),
      plan_(open.plan),
      announced_tokens_(open.tokens),
      announced_prompt_(open.prompt_tokens),
      announced_biases_(open.biases),
      stop_tokens_(open.stop_tokens) {
  opening_.reserve(announced_tokens_);
  branches.reserve(config.max_cache_budget);
  scratch.blocks.reserve(config.max_cache_budget * config.max_lookahead / kBlockSize + 1);
}

void SpeculatedSequence::AddTokens(std::span<const Token> tokens) {
  opening_.insert(opening_.end(), tokens.begin(), tokens.end());
  if (static_cast<std::int32_t>(opening_.size()) < announced_tokens_) return;
  history.AddPrompt(std::span<const Token>(opening_).first(announced_prompt_));
  for (std::size_t i = announced_prompt_; i < opening_.size(); ++i) history.AddOutput(opening_[i]);
  trunk.Extend(opening_, {});
}

void SpeculatedSequence::AddBiases(std::span<const OpenBiasMessage::Bias> biases) {
  for (const auto& bias : biases) sampling.logit_bias.emplace_back(bias.token, bias.value);
}

bool SpeculatedSequence::complete() const {
  return trunk.committed() >= announced_tokens_ &&
         static_cast<std::int32_t>(sampling.logit_bias.size()) == announced_biases_;
}

bool SpeculatedSequence::IsStop(Token token) const {
  return std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
}

std::span<const Token> SpeculatedSequence::ProposalUpTo(int node) const {
  return trunk.path().subspan(trunk.committed(), node);
}

void SpeculatedSequence::Advance(const OutcomeMessage& outcome, DraftModel& draft) {
  Learn(outcome);
  const Outcome key{outcome.node, outcome.committed.back()};
  const auto hit = std::find_if(branches.begin(), branches.end(),
                                [&](const Branch& branch) { return branch.outcome == key; });

  for (const Token token : outcome.committed) history.AddOutput(token);
  trunk.Extend(outcome.committed, outcome.proposal);
  rankings_.clear();
  expanded_ = 0;
  trunk.kv_length = std::min(trunk.kv_length, trunk.root());
  if (hit != branches.end() && trunk.kv_length == trunk.root()) {
    Promote(*hit, static_cast<int>(outcome.proposal.size()), draft);
  }
  branches.clear();
  plan_ = outcome.plan;
  after_fallback_ = outcome.wants_jit || outcome.source != ProposalSource::kCache;
  epoch = outcome.epoch;
  jit = outcome.wants_jit;
}

void SpeculatedSequence::Promote(const Branch& branch, int proposal_size, DraftModel& draft) {
  // Row i holds the KV of path node i as long as the engine took what the branch had prepared.
  const auto path = trunk.path().subspan(trunk.root());
  int rows = 0;
  while (rows < branch.rows() && rows <= proposal_size &&
         path[rows] == (rows == 0 ? branch.outcome.bonus : branch.chain[rows - 1])) {
    ++rows;
  }
  if (!draft.pool.Reserve(trunk.root() + rows, &trunk.kv)) return;
  StaticVector<KvMove, kMaxProposal + 1> moves;
  const auto first = static_cast<std::int32_t>(&branch - branches.data()) * plan_.lookahead;
  for (int i = 0; i < rows; ++i) {
    moves.push_back({.from = scratch.SlotOf(first + i), .to = trunk.kv.SlotOf(trunk.root() + i)});
    rankings_.push_back(branch.rankings[i]);
  }
  draft.model->backend().CopyKv(draft.kv, moves);
  trunk.kv_length = trunk.root() + rows;
}

void SpeculatedSequence::Learn(const OutcomeMessage& outcome) {
  const int proposal = proposal_size();
  predictor.AddAcceptance(proposal, outcome.node);
  if (outcome.node >= ranked() || outcome.node > proposal) return;
  const bool full = outcome.node == proposal;
  const Token proposed = full ? -1 : trunk.path()[trunk.committed() + outcome.node];
  int rank = 0;
  for (const Token candidate : rankings_[outcome.node]) {
    if (candidate == proposed) continue;
    if (candidate == outcome.committed.back()) {
      predictor.AddBonus(full, rank);
      return;
    }
    ++rank;
  }
  predictor.AddBonus(full, -1);
}

void SpeculatedSequence::Expand(std::int32_t max_context) {
  // While a just-in-time chain grows there is no proposal yet to have outcomes.
  if (jit) return;
  for (; expanded_ < ranked(); ++expanded_) {
    const int node = expanded_;
    // The branch's first row sits one past the node.
    if (trunk.root() + node + 1 >= max_context) continue;
    const bool inner = node < proposal_size();
    const Token accepted = inner ? trunk.path()[trunk.committed() + node] : -1;
    const double reached = predictor.NodeProbability(proposal_size(), node);
    // However short the proposal, its last node is the paper's k = K.
    const int fanout = this->fanout().at[inner ? node : plan_.lookahead];
    int made = 0;
    for (const Token bonus : rankings_[node]) {
      if (made == fanout) break;
      if (bonus == accepted) continue;
      const double weight = reached * predictor.RankProbability(!inner, made);
      ++made;
      // A stop token ends the sequence: there is nothing to prepare behind it.
      if (IsStop(bonus)) continue;
      branches.push_back({.outcome = {node, bonus}, .weight = weight, .chain = {}, .rankings = {}});
    }
  }
}

bool SpeculatedSequence::AppendBranchRow(DraftModel& draft, const Branch& branch,
                                         std::int32_t table, ForwardBatch* batch) {
  const auto first = static_cast<std::int32_t>(&branch - branches.data()) * plan_.lookahead;
  if (!draft.pool.Reserve(first + plan_.lookahead, &scratch)) return false;
  const std::int32_t fork = trunk.root() + branch.outcome.node + 1;
  const auto tail = static_cast<std::int32_t>(batch->tail_slots.size());
  for (int i = 0; i <= branch.rows(); ++i) batch->tail_slots.push_back(scratch.SlotOf(first + i));
  batch->rows.push_back({.token = branch.next_input(),
                         .place = {.position = fork + branch.rows(),
                                   .slot = batch->tail_slots.back(),
                                   .sequence = table,
                                   .trunk_length = fork,
                                   .tail_begin = tail},
                         .wants_logits = true});
  return true;
}

Token SpeculatedSequence::ExtendBranch(Branch* branch, const Ranking& ranking,
                                       std::int32_t max_context) {
  const Token token = ranking[0];
  branch->rankings.push_back(ranking);
  branch->chain.push_back(token);
  branch->done = branch->rows() == plan_.lookahead || IsStop(token) ||
                 trunk.root() + branch->outcome.node + 1 + branch->rows() >= max_context;
  return token;
}

bool SpeculatedSequence::ExtendJit(std::int32_t max_context) {
  const int size = proposal_size();
  const bool stopped = size > 0 && IsStop(trunk.path().back());
  if (size >= plan_.lookahead || stopped || rankings_.back().empty() ||
      trunk.length() >= max_context) {
    jit = false;
    return false;
  }
  StaticVector<Token, kMaxProposal> proposal;
  for (const Token token : ProposalUpTo(size)) proposal.push_back(token);
  proposal.push_back(rankings_.back()[0]);
  trunk.Extend({}, proposal);
  if (static_cast<int>(proposal.size()) == plan_.lookahead) jit = false;
  return jit;
}

}  // namespace foretoken
