#include "ssd/speculator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.h"

namespace foretoken {
namespace {

// Trunk rows of one sequence and pass: bounds how long a prompt holds up the others.
constexpr std::int32_t kTrunkRowsPerPass = 128;
// A branch's first token turns a miss into a hit, which spares the fallback's cost too.
constexpr double kHitValue = 2.0;
constexpr std::int64_t kIdleWaitNs = 50'000'000;
// With live sequences the next outcome is a target pass away. Waking a sleeper would cost the
// engine a system call (25 us) in the gap between two passes, so sleep comes only after this long.
constexpr std::int64_t kLiveSpinNs = 20'000'000;

// What the next token of a branch is worth: it counts only if the outcome comes true and all tokens
// before it are accepted.
double RowValue(const SpeculatedSequence& sequence, const Branch& branch) {
  if (branch.rows() == 0) return branch.weight * kHitValue;
  return branch.weight * std::pow(sequence.predictor.acceptance(), branch.rows());
}

template <typename Message>
void Send(Channel& channel, const Message& message) {
  // A full channel means that the engine has stopped listening; losing a prepared token is
  // harmless, it only makes a proposal shorter.
  (void)channel.Send(std::as_bytes(std::span(&message, 1)));
}

bool ChannelReadable(void* channel) { return static_cast<Channel*>(channel)->Readable(); }

}  // namespace

Speculator::Speculator(LlamaModel* draft, Channel* channel) : model_(draft), channel_(channel) {}
Speculator::~Speculator() = default;

void Speculator::Run(bool (*stop)(void* context), void* context) {
  Send(*channel_, ReadyMessage{});
  while (!stop(context)) {
    if (!HandleMessages()) return;
    if (!Step() && !SpinWhileLive()) channel_->WaitReadable(kIdleWaitNs);
  }
}

bool Speculator::SpinWhileLive() {
  if (sequences_.empty()) return false;
  const std::int64_t end = NowNs() + kLiveSpinNs;
  while (!channel_->Readable()) {
    if (NowNs() > end) return false;
    std::this_thread::yield();  // The engine may share the core.
  }
  return true;
}

bool Speculator::HandleMessages() {
  for (auto record = channel_->Receive(); !record.empty(); record = channel_->Receive()) {
    if (!Handle(record)) return false;
  }
  return true;
}

bool Speculator::Handle(std::span<const std::byte> record) {
  const MessageKind kind = KindOf(record);
  if (const auto* message = As<ConfigureMessage>(record); kind == MessageKind::kConfigure) {
    if (message == nullptr || config_.has_value()) return true;
    config_ = *message;
    const int scratch = message->max_cache_budget * message->max_lookahead;
    draft_ =
        std::make_unique<DraftModel>(model_, message->max_sequences, message->max_context, scratch);
    Reserve();
  } else if (const auto* open = As<OpenMessage>(record); kind == MessageKind::kOpen) {
    if (open != nullptr) Open(*open);
  } else if (const auto* tokens = As<OpenTokensMessage>(record); kind == MessageKind::kOpenTokens) {
    SpeculatedSequence* sequence = tokens == nullptr ? nullptr : Find(tokens->sequence);
    if (sequence != nullptr) sequence->AddTokens(tokens->tokens);
  } else if (const auto* biases = As<OpenBiasMessage>(record); kind == MessageKind::kOpenBias) {
    SpeculatedSequence* sequence = biases == nullptr ? nullptr : Find(biases->sequence);
    if (sequence != nullptr) sequence->AddBiases(biases->biases);
  } else if (const auto* outcome = As<OutcomeMessage>(record); kind == MessageKind::kOutcome) {
    SpeculatedSequence* sequence = outcome == nullptr ? nullptr : Find(outcome->sequence);
    if (sequence != nullptr && sequence->complete() && !outcome->committed.empty()) {
      sequence->Advance(*outcome, *draft_);
    }
  } else if (const auto* close = As<CloseMessage>(record); kind == MessageKind::kClose) {
    if (close == nullptr) return true;
    std::erase_if(sequences_, [&](const auto& sequence) {
      if (sequence->id != close->sequence) return false;
      draft_->pool.Release(&sequence->trunk.kv);
      draft_->pool.Release(&sequence->scratch);
      return true;
    });
  }
  return kind != MessageKind::kShutdown;
}

void Speculator::Reserve() {
  // How many rows a pass has depends on how far the engine is ahead: room for the most comes now.
  const auto sequences = static_cast<std::size_t>(config_->max_sequences);
  const std::size_t trunk = sequences * (config_->max_lookahead + 1);
  const std::size_t rows = trunk + kMaxBranchRows;
  model_->Reserve(rows, rows);
  draft_->batch.rows.reserve(rows);
  draft_->batch.block_tables.reserve(2 * sequences);
  draft_->batch.tail_slots.reserve(std::size_t{kMaxBranchRows} * config_->max_lookahead);
  trunk_rows_.reserve(sequences);
  branch_rows_.reserve(sequences * config_->max_cache_budget);
}

void Speculator::Open(const OpenMessage& message) {
  if (!config_.has_value() || Find(message.sequence) != nullptr) return;
  sequences_.push_back(
      std::make_unique<SpeculatedSequence>(message, *config_, model_->config().vocabulary));
}

SpeculatedSequence* Speculator::Find(SequenceId sequence) {
  for (const auto& candidate : sequences_) {
    if (candidate->id == sequence) return candidate.get();
  }
  return nullptr;
}

bool Speculator::Step() {
  if (draft_ == nullptr) return false;
  const bool jit = std::any_of(sequences_.begin(), sequences_.end(),
                               [](const auto& sequence) { return sequence->jit; });
  draft_->batch.Clear();
  trunk_rows_.clear();
  branch_rows_.clear();
  for (const auto& sequence : sequences_) sequence->Expand(draft_->max_context);
  CollectTrunkRows(jit);
  if (!jit) CollectBranchRows();
  if (draft_->batch.rows.empty()) return false;
  if (config_->delay_us > 0) DelayForTests();

  const std::int64_t start = NowNs();
  const float* logits =
      model_->Forward(draft_->batch, draft_->kv, {.raised = ChannelReadable, .context = channel_});
  if (logits == nullptr) return true;  // Interrupted: the records decide what matters now.
  // Passes over a prompt lie far beyond the row counts to choose between and would tilt the line.
  if (draft_->batch.rows.size() <= 2 * std::size_t{kMaxBranchRows}) {
    row_cost_.Add(static_cast<int>(draft_->batch.rows.size()), NowNs() - start);
  }
  std::size_t row = 0;
  TakeTrunkRows(logits, &row);
  TakeBranchRows(logits, row);
  return true;
}

void Speculator::CollectTrunkRows(bool only_jit) {
  for (const auto& sequence : sequences_) {
    if (!sequence->complete() || (only_jit && !sequence->jit)) continue;
    DraftTrunk& trunk = sequence->trunk;
    const std::int32_t end =
        std::min({trunk.length(), trunk.kv_length + kTrunkRowsPerPass, draft_->max_context});
    if (end > trunk.kv_length && trunk.AppendRows(*draft_, end, trunk.root(), &draft_->batch)) {
      trunk_rows_.emplace_back(sequence.get(), end);
    } else if (sequence->jit) {
      FinishJit(sequence.get());  // The draft's context or memory is full: nothing to propose.
    }
  }
}

void Speculator::CollectBranchRows() {
  for (const auto& sequence : sequences_) {
    for (Branch& branch : sequence->branches) {
      if (branch.done) continue;
      branch_rows_.push_back(
          {.sequence = sequence.get(), .branch = &branch, .score = RowValue(*sequence, branch)});
    }
  }
  std::sort(branch_rows_.begin(), branch_rows_.end(),
            [](const BranchRow& a, const BranchRow& b) { return a.score > b.score; });
  if (branch_rows_.size() > kMaxBranchRows) branch_rows_.resize(kMaxBranchRows);
  std::array<double, kMaxBranchRows> values;
  for (std::size_t i = 0; i < branch_rows_.size(); ++i) values[i] = branch_rows_[i].score;
  branch_rows_.resize(row_cost_.Choose(std::span(values).first(branch_rows_.size()),
                                       static_cast<int>(draft_->batch.rows.size())));
  // Rows of one sequence must be adjacent; in a table of their own, since trunk rows may stand
  // between.
  std::sort(branch_rows_.begin(), branch_rows_.end(), [](const BranchRow& a, const BranchRow& b) {
    return a.sequence != b.sequence ? a.sequence->id < b.sequence->id : a.branch < b.branch;
  });
  ForwardBatch& batch = draft_->batch;
  const SpeculatedSequence* current = nullptr;
  std::size_t kept = 0;
  for (const BranchRow& work : branch_rows_) {
    if (work.sequence != current) {
      current = work.sequence;
      batch.block_tables.push_back(current->trunk.kv.blocks.data());
    }
    const auto table = static_cast<std::int32_t>(batch.block_tables.size()) - 1;
    if (work.sequence->AppendBranchRow(*draft_, *work.branch, table, &batch)) {
      branch_rows_[kept++] = work;
    } else {
      work.branch->done = true;
    }
  }
  branch_rows_.resize(kept);
}

void Speculator::TakeTrunkRows(const float* logits, std::size_t* row) {
  const int vocabulary = model_->config().vocabulary;
  for (const auto& [sequence, end] : trunk_rows_) {
    DraftTrunk& trunk = sequence->trunk;
    for (std::int32_t position = trunk.kv_length; position < end; ++position) {
      if (position < trunk.root()) continue;
      const Ranking ranking = RankRow(logits + (*row)++ * vocabulary, *sequence,
                                      sequence->ProposalUpTo(position - trunk.root()));
      sequence->AddRanking(ranking);
    }
    trunk.kv_length = end;
    if (sequence->jit && sequence->tip_ranked() && !sequence->ExtendJit(draft_->max_context)) {
      FinishJit(sequence);
    }
  }
}

void Speculator::TakeBranchRows(const float* logits, std::size_t row) {
  const int vocabulary = model_->config().vocabulary;
  std::array<Token, 2 * kMaxProposal + 1> path;
  BranchTokensMessage message;
  for (const BranchRow& work : branch_rows_) {
    SpeculatedSequence& sequence = *work.sequence;
    Branch& branch = *work.branch;
    const auto accepted = sequence.ProposalUpTo(branch.outcome.node);
    auto end = std::copy(accepted.begin(), accepted.end(), path.begin());
    *end++ = branch.outcome.bonus;
    end = std::copy(branch.chain.begin(), branch.chain.end(), end);
    const Ranking ranking =
        RankRow(logits + row++ * vocabulary, sequence, std::span(path.begin(), end));
    if (ranking.empty()) {
      branch.done = true;
      continue;
    }
    if (message.sequence != sequence.id) {
      SendBranchTokens(message);
      message.sequence = sequence.id;
      message.epoch = sequence.epoch;
      message.count = 0;
    }
    message.tokens[message.count++] = {
        branch.outcome.node, branch.outcome.bonus,
        sequence.ExtendBranch(&branch, ranking, draft_->max_context)};
  }
  SendBranchTokens(message);
}

void Speculator::SendBranchTokens(const BranchTokensMessage& message) {
  if (message.count == 0) return;
  // As in Send: what does not fit is lost without harm.
  (void)channel_->Send(
      std::as_bytes(std::span(&message, 1)).first(BranchTokensMessage::BytesFor(message.count)));
}

void Speculator::FinishJit(SpeculatedSequence* sequence) {
  sequence->jit = false;
  ChainMessage message{.epoch = sequence->epoch, .sequence = sequence->id, .tokens = {}};
  for (const Token token : sequence->ProposalUpTo(sequence->proposal_size())) {
    message.tokens.push_back(token);
  }
  Send(*channel_, message);
}

Ranking Speculator::RankRow(const float* logits, const SpeculatedSequence& sequence,
                            std::span<const Token> path) {
  std::array<Candidate, kMaxFanout + 1> best;
  const auto position = sequence.trunk.committed() + path.size();
  const std::size_t count =
      draft_->sampler.Rank(logits, sequence.sampling, sequence.history, path, position,
                           std::span(best).first(sequence.fanout().widest() + 1));
  Ranking ranking;
  for (std::size_t i = 0; i < count; ++i) ranking.push_back(best[i].token);
  return ranking;
}

void Speculator::DelayForTests() {
  const auto delay = static_cast<std::int64_t>(delay_noise_() % (config_->delay_us + 1));
  std::this_thread::sleep_for(std::chrono::microseconds(delay));
}

}  // namespace foretoken
