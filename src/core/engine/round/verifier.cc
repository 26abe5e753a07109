#include "core/engine/round/verifier.h"

#include <algorithm>
#include <cmath>

#include "base/numbers/philox.h"
#include "core/speculation/lossy.h"
#include "core/speculation/rejection.h"
#include "core/speculation/verify.h"

namespace foretoken {
namespace {

// By so much the logit of a scripted token is above others: no filter and no temperature that
// requests ask for drops it, and a bias of -100, which bans a token, does.
constexpr float kFarAbove = 80;

// The position of the next token that the sequence emits in this round.
std::size_t NextPosition(const Sequence& sequence) {
  return sequence.tokens.size() + sequence.emitted.size();
}

}  // namespace

void Verifier::Verify(Logits logits, const SpeculatorClient* speculator, std::int64_t mask_steps,
                      Sequence* sequence) {
  const Logits own = logits.Row(sequence->first_logits, vocabulary_);
  sequence->emitted.clear();
  sequence->verified_nodes.clear();
  sequence->lossy.clear();
  sequence->verified = sequence->proposal;
  sequence->outcome = sequence->draws ? ByRejection(own, mask_steps, sequence)
                                      : ByNoise(own, speculator, mask_steps, sequence);
  sequence->not_finite = sequence->outcome.bonus < 0;
}

Outcome Verifier::ByNoise(Logits logits, const SpeculatorClient* speculator,
                          std::int64_t mask_steps, Sequence* sequence) {
  const auto choose = [&](int node) {
    sequence->verified_nodes.push_back(static_cast<std::int8_t>(node));
    Token token = Choose(logits, node, *sequence);
    if (token < 0) return token;
    if (script_.has_value()) {
      token = script_->answer == nullptr ? FollowScript(speculator, node, token, *sequence)
                                         : FollowAnswer(logits, node, token, *sequence);
    }
    if (lossy_.kind != Lossy::kNone) token = Relax(logits, node, token, sequence);
    sequence->emitted.push_back(token);
    return token;
  };
  const auto may_enter = [&](int) {
    return sequence->history.PrepareMask(sequence->emitted, &mask_steps);
  };
  return VerifySharedNoise(sequence->proposal, choose, may_enter);
}

Outcome Verifier::ByRejection(Logits logits, std::int64_t mask_steps, Sequence* sequence) {
  const Proposal& proposal = sequence->proposal;
  const SamplingParams& sampling = sequence->request.sampling;
  auto& emitted = sequence->emitted;
  // Called first with every node on the accepted path, root first.
  const auto visit = [&](int node) {
    if (!sequence->verified_nodes.empty() && sequence->verified_nodes.back() == node) return;
    if (node != 0) emitted.push_back(proposal.tokens[node - 1]);
    sequence->verified_nodes.push_back(static_cast<std::int8_t>(node));
  };
  const auto distribution_of = [&](int node) {
    visit(node);
    const Logits row = logits.Row(node, vocabulary_);
    return sampler_.Probabilities(row.values, sampling, sequence->history, emitted);
  };
  const auto uniform = [&](int, int index) {
    return AcceptanceUniform(sampling.seed, NextPosition(*sequence), index);
  };
  const auto bonus = [&](int node, std::span<float> weights) {
    visit(node);
    const Token token =
        weights.empty()
            ? Choose(logits, node, *sequence)
            : std::max(sampler_.ChooseByWeight(weights, sampling.seed, NextPosition(*sequence)),
                       Token{0});
    if (token >= 0) emitted.push_back(token);
    return token;
  };
  const auto may_enter = [&](int node, int child) {
    visit(node);
    emitted.push_back(proposal.tokens[child - 1]);
    const bool may = sequence->history.PrepareMask(emitted, &mask_steps);
    if (may) emitted.resize(emitted.size() - 1);  // Visiting the child adds it.
    return may;
  };
  return VerifyRejection(proposal, sequence->distributions, distribution_of, uniform, bonus,
                         may_enter);
}

Token Verifier::Choose(Logits logits, int node, const Sequence& sequence) {
  const Candidate chosen =
      sampler_.Choose(logits.Row(node, vocabulary_), sequence.request.sampling, sequence.history,
                      sequence.emitted, NextPosition(sequence));
  return std::isfinite(chosen.score) ? chosen.token : -1;
}

std::span<const float> Verifier::DistributionAt(Logits logits, int node, const Sequence& sequence) {
  const SamplingParams* sampling = &sequence.request.sampling;
  if (sampling->temperature == 0) {
    at_one_ = *sampling;
    at_one_.temperature = 1;
    sampling = &at_one_;
  }
  return sampler_.Probabilities(logits.Row(node, vocabulary_).values, *sampling, sequence.history,
                                sequence.emitted);
}

Token Verifier::FollowAnswer(Logits logits, int node, Token choice, const Sequence& sequence) {
  const std::size_t next = NextPosition(sequence) - sequence.request.prompt.size();
  if (next >= sequence.scripted.size()) return choice;
  const Token token = sequence.scripted[next];
  if (token == choice) return choice;
  const std::span row(logits.Row(node, vocabulary_).values, vocabulary_);
  raised_.assign(row.begin(), row.end());
  raised_[token] = std::ranges::max(row) + kFarAbove;
  return Choose(raised_.data(), /*node=*/0, sequence);
}

Token Verifier::Relax(Logits logits, int node, Token choice, Sequence* sequence) {
  const Proposal& proposal = sequence->proposal;
  if (proposal.FirstChild(node) == 0 || proposal.ChildWith(node, choice) != 0) return choice;
  const auto p = DistributionAt(logits, node, *sequence);
  const int child = lossy_.kind == Lossy::kJudge
                        ? MostApprovedChild(node, p, *sequence)
                        : LikeliestChild(proposal, node, p, LeastAccepted(lossy_, p));
  if (child == 0) return choice;
  sequence->lossy.push_back(static_cast<std::int8_t>(sequence->emitted.size()));
  return proposal.tokens[child - 1];
}

int Verifier::MostApprovedChild(int node, std::span<const float> p,
                                const Sequence& sequence) const {
  const Proposal& proposal = sequence.proposal;
  const TapRows states{judge_.kept, &sequence.kv, judge_.final_state};
  return BestChild(proposal, node, [&](int child) {
    const float possible = p[proposal.tokens[child - 1]];
    if (!(possible >= kLeastPossible)) return 0.0;
    // What is kept of a node lies where its keys do, so many slots behind the root (KvTree).
    const double approval = judge_.head->Approval(states.At(sequence.root() + child));
    return approval > static_cast<double>(lossy_.approval) ? approval : 0.0;
  });
}

// What the script says in place of `choice`.
Token Verifier::FollowScript(const SpeculatorClient* speculator, int node, Token choice,
                             const Sequence& sequence) {
  const auto draw = [&](std::uint32_t which) {
    return PhiloxDraw(script_->seed ^ (sequence.id << 32), NextPosition(sequence), which,
                      NoisePurpose::kScript);
  };
  const Proposal& proposal = sequence.proposal;
  const int child = proposal.FirstChild(node);
  const Token proposed = child == 0 ? -1 : proposal.tokens[child - 1];
  if (child != 0 && UnitInterval(draw(0)) < script_->acceptance) return proposed;
  if (sequence.opened && UnitInterval(draw(1)) < script_->hit) {
    speculator->PreparedAt(sequence.id, node, &prepared_);
    // Prepared tokens come likeliest first: the first is it with probability 2/3, and so on.
    std::size_t which = 0;
    while (which + 1 < prepared_.size() && UnitInterval(draw(2 + which)) > 2.0 / 3) ++which;
    if (!prepared_.empty()) return prepared_[which];
  }
  return choice == proposed ? (choice + 1) % vocabulary_ : choice;
}

void TakeBack(KvMemory memory, Sequence* sequence) {
  // Rows multiply what they do not see of a block with 0: behind what is committed must be numbers.
  SequenceKv& kv = sequence->kv;
  if (kv.committed == 0) {
    for (const std::int32_t block : kv.blocks) ClearBlock(block, memory.store);
  } else {
    std::vector<KvMove> moves;
    const auto end = static_cast<std::int32_t>(kv.blocks.size()) * kBlockSize;
    for (std::int32_t position = kv.committed; position < end; ++position) {
      moves.push_back({kv.SlotOf(kv.committed - 1), kv.SlotOf(position)});
    }
    memory.backend->CopyKv(*memory.store, moves);
  }
  sequence->proposal.Clear();
  sequence->emitted.clear();
  sequence->not_finite = false;
  sequence->alone = true;
  sequence->verifies = false;
}

void CommitOutcome(KvMemory memory, Sequence* sequence) {
  const Proposal& proposal = sequence->proposal;
  const std::int32_t root = sequence->root();
  const auto path = PathTo(proposal, sequence->outcome.node);
  const int accepted = path.size();
  RequestStats& stats = sequence->stats;
  ++stats.rounds;
  stats.proposed += proposal.size();
  sequence->accepted = accepted;
  stats.accepted += accepted;
  const bool more = proposal.FirstChild(sequence->outcome.node) != 0;
  for (int depth = 0; depth < accepted + (more ? 1 : 0); ++depth) {
    ++stats.reached_at[depth];
    if (depth < accepted) ++stats.accepted_at[depth];
  }
  const int committed = sequence->Commit(sequence->emitted);
  sequence->emitted.resize(committed);
  for (const int at : sequence->lossy) stats.lossy += at < committed ? 1 : 0;
  const std::size_t kept = std::min(committed, accepted);
  CommitPath(root, std::span(path.begin(), kept), memory, &sequence->kv);
  sequence->proposal.Clear();
}

}  // namespace foretoken
