#include <algorithm>

#include "base/clock.h"
#include "base/philox.h"
#include "engine/engine_impl.h"
#include "speculation/rejection.h"
#include "speculation/verify.h"

namespace foretoken {

bool Engine::Impl::Step() {
  if (!adopted_) {
    device_->Adopt();
    adopted_ = true;
  }
  TakeInbox();
  AdmitWaiting();
  if (scheduler_.running().empty()) {
    last_pass_end_ = 0;  // What follows is idle time, not a gap between rounds.
    return !scheduler_.waiting().empty();
  }
  round_wait_ns_ = 0;
  round_choose_ns_ = 0;
  CollectProposals();
  const bool planned = PlanPass();
  EndSpeculationOfPreempted();
  if (!planned) return true;
  if (speculator_ != nullptr) SendRetrieved();

  const std::int64_t pass_start = NowNs();
  const Logits logits = target_->Forward(batch_, kv_);
  const std::int64_t pass_end = NowNs();
  RecordRound(pass_start, pass_end);

  if (speculator_ != nullptr) TakeNews();
  for (Sequence* sequence : pass_) Verify(sequence, logits);
  if (speculator_ != nullptr) SendOutcomes();
  if (!pass_prefills_) stats_.choose.Add(round_choose_ns_);
  last_round_all_hit_ =
      speculator_ != nullptr && std::all_of(pass_.begin(), pass_.end(), [](Sequence* sequence) {
        return sequence->hit == true && !sequence->finish.has_value();
      });
  for (Sequence* sequence : pass_) {
    scheduler_.kv().Publish(sequence->tokens, &sequence->kv);
    if (sequence->verifies) ReportRound(*sequence);
    EmitTokens(sequence, logits);
  }
  TeachRetrieval();
  if (planner_ != nullptr) ConsultPlanner();
  for (Sequence* sequence : pass_) {
    sequence->in_pass = false;
    if (sequence->finish.has_value()) Retire(sequence);
  }
  return true;
}

void Engine::Impl::TakeNews() {
  speculator_->Poll();
  const DraftPasses news = speculator_->TakeDraftPasses();
  stats_.draft += news;
  if (planner_ == nullptr || news.passes == 0) return;
  const double passes = static_cast<double>(news.passes);
  planner_->ObserveDraft(static_cast<double>(news.rows) / passes, LoadNow().context,
                         static_cast<double>(news.ns) / 1e3 / passes);
}

bool Engine::Impl::PlanPass() {
  ReserveRows();
  int prompt_budget = options_.prefill_chunk;
  // Preemption shortens the running set from its young end, so an index stays valid.
  for (std::size_t i = 0; i < scheduler_.running().size(); ++i) {
    Sequence* sequence = scheduler_.running()[i].get();
    sequence->in_pass = false;
    const int rows = PlanRows(sequence, prompt_budget);
    if (rows == 0) continue;
    const std::int32_t end =
        sequence->kv.cursor.committed + rows + (sequence->verifies ? sequence->proposal.size() : 0);
    if (!scheduler_.Reserve(sequence, end)) continue;
    if (rows > 1) prompt_budget -= rows;
    sequence->in_pass = true;
    sequence->pass_rows = rows;
    sequence->kv.cursor.tentative = end;
  }
  pass_.clear();
  batch_.Clear();
  pass_prefills_ = false;
  int logits = 0;
  for (const auto& sequence : scheduler_.running()) {
    if (!sequence->in_pass) continue;
    pass_prefills_ = pass_prefills_ || sequence->pass_rows > 1;
    sequence->first_logits = logits;
    if (sequence->verifies) logits += 1 + sequence->proposal.size();
    AppendRows(sequence.get());
    pass_.push_back(sequence.get());
  }
  return !pass_.empty();
}

void Engine::Impl::ReserveRows() {
  // How many rows a pass has depends on what the drafts have proposed, under SSD on how fast they
  // were: room for the most that the plans allow comes at once.
  std::size_t rows = 0;
  std::size_t tails = 0;
  for (const auto& sequence : scheduler_.running()) {
    const auto nodes = static_cast<std::size_t>(MostNodes(sequence->plan));
    rows += 1 + nodes;
    tails += nodes * (nodes + 1) / 2;  // At most i nodes are on the path to node i.
  }
  batch_.rows.reserve(rows);
  batch_.tail_slots.reserve(tails);
  target_->Reserve(rows, rows);
}

int Engine::Impl::PlanRows(Sequence* sequence, int budget) {
  const int left = sequence->uncomputed();
  const int rows = left == 1 ? 1 : std::min(left, budget);
  sequence->verifies = rows == left;
  return rows;
}

void Engine::Impl::AppendRows(Sequence* sequence) {
  RowPlacer placer(sequence->kv, &batch_.block_tables, &batch_.tail_slots);
  const std::int32_t begin = sequence->kv.cursor.committed;
  for (std::int32_t position = begin; position < begin + sequence->pass_rows; ++position) {
    batch_.rows.push_back({.token = sequence->tokens[position],
                           .place = placer.Committed(position),
                           .wants_logits = position == sequence->root()});
  }
  if (!sequence->verifies) return;
  const Proposal& proposal = sequence->proposal;
  const KvTree tree(sequence->root(), proposal.parents);
  for (int node = 1; node <= proposal.size(); ++node) {
    batch_.rows.push_back({.token = proposal.tokens[node - 1],
                           .place = placer.Node(tree, node),
                           .wants_logits = true});
  }
}

void Engine::Impl::Verify(Sequence* sequence, Logits logits) {
  sequence->hit.reset();
  sequence->hit_rank.reset();
  if (!sequence->verifies) {
    CommitRows(sequence->kv.cursor.committed + sequence->pass_rows, &sequence->kv);
    return;
  }
  const Logits own = logits.Row(sequence->first_logits, target_->config().vocabulary);
  sequence->emitted.clear();
  sequence->verified_nodes.clear();
  sequence->verified = sequence->proposal;
  const std::int64_t start = NowNs();
  sequence->outcome =
      sequence->draws ? VerifyByRejection(sequence, own) : VerifyByNoise(sequence, own);
  round_choose_ns_ += NowNs() - start;
  CommitOutcome(sequence);
  sequence->proposal.Clear();
}

Outcome Engine::Impl::VerifyByNoise(Sequence* sequence, Logits logits) {
  return VerifySharedNoise(sequence->proposal, [&](int node) {
    const Token token = Choose(sequence, node, logits);
    sequence->emitted.push_back(token);
    sequence->verified_nodes.push_back(static_cast<std::int8_t>(node));
    return token;
  });
}

Outcome Engine::Impl::VerifyByRejection(Sequence* sequence, Logits logits) {
  const Proposal& proposal = sequence->proposal;
  const SamplingParams& sampling = sequence->request.sampling;
  auto& emitted = sequence->emitted;
  // Called first with every node on the accepted path, root first.
  const auto visit = [&](int node) {
    if (!sequence->verified_nodes.empty() && sequence->verified_nodes.back() == node) return;
    if (node != 0) emitted.push_back(proposal.tokens[node - 1]);
    sequence->verified_nodes.push_back(static_cast<std::int8_t>(node));
  };
  const auto law_of = [&](int node) {
    visit(node);
    const Logits row = logits.Row(node, target_->config().vocabulary);
    return sampler_.Probabilities(row.values, sampling, sequence->history, emitted);
  };
  const auto uniform = [&](int, int index) {
    return AcceptanceUniform(sampling.seed, sequence->tokens.size() + emitted.size(), index);
  };
  const auto bonus = [&](int node, std::span<float> weights) {
    visit(node);
    const auto position = sequence->tokens.size() + emitted.size();
    const Token token =
        weights.empty()
            ? Choose(sequence, node, logits)
            : std::max(sampler_.ChooseByWeight(weights, sampling.seed, position), Token{0});
    emitted.push_back(token);
    return token;
  };
  return VerifyRejection(proposal, sequence->laws, law_of, uniform, bonus);
}

Token Engine::Impl::Choose(Sequence* sequence, int node, Logits logits) {
  const Logits row = logits.Row(node, target_->config().vocabulary);
  const auto position = sequence->tokens.size() + sequence->emitted.size();
  const Token token =
      sampler_
          .Choose(row, sequence->request.sampling, sequence->history, sequence->emitted, position)
          .token;
  // Logits without a single finite value choose nothing; token 0 keeps the sequence well formed.
  const Token choice = std::max(token, Token{0});
  return options_.script.has_value() ? ApplyScript(sequence, node, choice) : choice;
}

Token Engine::Impl::ApplyScript(Sequence* sequence, int node, Token choice) {
  const Script& script = *options_.script;
  const auto position = sequence->tokens.size() + sequence->emitted.size();
  const auto draw = [&](std::uint32_t which) {
    return PhiloxDraw(script.seed ^ (sequence->id << 32), position, which, NoisePurpose::kScript);
  };
  const Proposal& proposal = sequence->proposal;
  const int child = proposal.FirstChild(node);
  const Token proposed = child == 0 ? -1 : proposal.tokens[child - 1];
  if (child != 0 && UnitInterval(draw(0)) < script.acceptance) return proposed;
  if (sequence->opened && UnitInterval(draw(1)) < script.hit) {
    speculator_->PreparedAt(sequence->id, node, &prepared_);
    // Prepared tokens come likeliest first: the first is it with probability 2/3, and so on.
    std::size_t which = 0;
    while (which + 1 < prepared_.size() && UnitInterval(draw(2 + which)) > 2.0 / 3) ++which;
    if (!prepared_.empty()) return prepared_[which];
  }
  return choice == proposed ? (choice + 1) % target_->config().vocabulary : choice;
}

void Engine::Impl::CommitOutcome(Sequence* sequence) {
  const Proposal& proposal = sequence->proposal;
  const std::int32_t root = sequence->root();
  const auto path = PathTo(proposal, sequence->outcome.node);
  RequestStats& stats = sequence->stats;
  ++stats.rounds;
  stats.proposed += proposal.size();
  sequence->accepted = static_cast<int>(path.size());
  stats.accepted += sequence->accepted;
  const bool more = proposal.FirstChild(sequence->outcome.node) != 0;
  for (std::size_t depth = 0; depth < path.size() + (more ? 1 : 0); ++depth) {
    ++stats.reached_at[depth];
    if (depth < path.size()) ++stats.accepted_at[depth];
  }
  const int committed = sequence->Commit(sequence->emitted);
  sequence->emitted.resize(committed);
  const std::size_t kept = std::min<std::size_t>(committed, path.size());
  CommitPath(root, std::span(path.begin(), kept), {&target_->backend(), &kv_}, &sequence->kv);
}

void Engine::Impl::ReportRound(const Sequence& sequence) {
  sequence.request.listener->OnRound(sequence.id, {.round = sequence.stats.rounds,
                                                   .mode = sequence.plan.mode,
                                                   .lookahead = sequence.plan.lookahead,
                                                   .source = sequence.verified.source,
                                                   .proposed = sequence.verified.tokens,
                                                   .parents = sequence.verified.parents,
                                                   .node = sequence.outcome.node,
                                                   .bonus = sequence.outcome.bonus,
                                                   .accepted = sequence.accepted,
                                                   .hit_rank = sequence.hit_rank,
                                                   .hit = sequence.hit,
                                                   .round_ns = round_ns_});
}

void Engine::Impl::EmitTokens(Sequence* sequence, Logits logits) {
  if (!sequence->verifies) return;
  if (sequence->stats.first_token_ns == 0) sequence->stats.first_token_ns = NowNs();
  const std::int64_t vocabulary = target_->config().vocabulary;
  const int top = sequence->request.sampling.top_logprobs;
  const std::size_t count = sequence->emitted.size();
  for (std::size_t i = 0; i < count; ++i) {
    EmittedToken emitted{.token = sequence->emitted[i], .origin = sequence->OriginOf(i)};
    const bool last = i + 1 == count && sequence->finish.has_value();
    emitted.text = sequence->EmitText(emitted.token, last);
    if (top >= 0) {
      const std::int64_t row = sequence->first_logits + sequence->verified_nodes[i];
      ComputeLogprobs(logits.Row(row, vocabulary).values, static_cast<int>(vocabulary),
                      emitted.token, top, &logprobs_);
      emitted.logprobs = &logprobs_;
    }
    sequence->request.listener->OnToken(sequence->id, emitted);
    if (sequence->finish == FinishReason::kStopString) {
      // Tokens of this round behind the stop string do not exist.
      sequence->tokens.resize(sequence->tokens.size() - (count - 1 - i));
      return;
    }
  }
}

void Engine::Impl::RecordRound(std::int64_t pass_start, std::int64_t pass_end) {
  ++stats_.passes;
  stats_.rows += static_cast<std::int64_t>(batch_.rows.size());
  if (!pass_prefills_) {
    stats_.target.Add(pass_end - pass_start);
    if (last_pass_end_ != 0) {
      const std::int64_t gap = pass_start - last_pass_end_;
      stats_.wait.Add(round_wait_ns_);
      stats_.host.Add(gap - round_wait_ns_);
      if (last_round_all_hit_) stats_.hit_gap.Add(gap);
    }
  }
  pass_ns_ = pass_end - pass_start;
  gap_ns_ = last_pass_end_ != 0 ? pass_start - last_pass_end_ : -1;
  round_ns_ = pass_end - (last_pass_end_ != 0 ? last_pass_end_ : pass_start);
  last_pass_end_ = pass_end;
}

}  // namespace foretoken
