#include "core/ssd/speculator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/prediction/branch_rows.h"
#include "core/ssd/outcome_record.h"

namespace foretoken {
namespace {

// Rows of contexts that are read in one pass, of all sequences together: bounds how long a prompt
// holds up the others. An outcome interrupts a pass, and what it has read so far is lost, so passes
// become shorter until they come through between two outcomes; the shortest are not interrupted.
// (16 sequences of 100 tokens that opened at once took ten of the target's passes to read at a
// time, and nothing was prepared for any of them as long as they went on.)
constexpr int kMostReadingRows = 128;
constexpr int kLeastReadingRows = 16;
static_assert(kMostReadingRows <= DraftModel::kReadingRows);
constexpr std::int64_t kIdleWaitNs = 50'000'000;
// With live sequences the next outcome is a target pass away. Waking a sleeper would cost the
// engine a system call (25 us) in the gap between two passes, so sleep comes only after this long.
constexpr std::int64_t kLiveSpinNs = 20'000'000;

template <typename Message>
void Send(Channel& channel, const Message& message) {
  // A full channel means that the engine has stopped listening; losing a prepared token is
  // harmless, it only makes a proposal shorter.
  (void)channel.Send(RecordOf(message));
}

// The nodes at a depth of a tree that does not grow which have no ranking.
TreeNodes UnrankedAt(const DraftTree& tree, int depth) {
  TreeNodes nodes;
  for (int node = 0; node < tree.nodes(); ++node) {
    if (tree.proposal().Depth(node) != depth || tree.ranked(node)) continue;
    nodes.push_back(static_cast<std::int8_t>(node));
  }
  return nodes;
}

bool ChannelReadable(void* channel) { return static_cast<Channel*>(channel)->Readable(); }

}  // namespace

Speculator::Speculator(Model* draft, Channel* channel, CompileConstraint compile,
                       const ModelIdentity& identity)
    : model_(draft),
      channel_(channel),
      identity_(identity),
      compile_(std::move(compile)),
      reading_rows_(kMostReadingRows) {}
Speculator::~Speculator() = default;

Status Speculator::Run(bool (*stop)(void* context), void* context) {
  Send(*channel_, HelloMessage{.draft = identity_});
  while (!stop(context)) {
    if (!HandleMessages()) return refusal_;
    if (!Step() && !SpinWhileLive()) channel_->WaitReadable(kIdleWaitNs);
  }
  return {};
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

bool Speculator::Greet(std::span<const std::byte> record) {
  const Status hello = CheckHello(record, identity_);
  greeted_ = hello.ok();
  if (!greeted_) refusal_ = Error{hello.error().code, "the engine " + hello.error().message};
  return greeted_;
}

bool Speculator::Handle(std::span<const std::byte> record) {
  if (!greeted_) return Greet(record);
  SpeculatedSequence* sequence = nullptr;
  const auto finds = [&](SequenceId id) { return (sequence = Find(id)) != nullptr; };
  if (const OutcomeMessage* outcome = OutcomeOf(record)) {
    if (finds(outcome->sequence) && sequence->complete()) {
      sequence->Advance(*outcome, *draft_, &retrieval_rates_);
    }
  } else if (const auto* plan = As<PlanMessage>(record)) {
    if (finds(plan->sequence)) sequence->SetPlan(plan->plan);
  } else if (const auto* retrieved = As<RetrievedMessage>(record)) {
    if (finds(retrieved->sequence) && sequence->epoch == retrieved->epoch) {
      sequence->TakeRetrieved(retrieved->list);
    }
  } else if (const auto* config = As<ConfigureMessage>(record)) {
    if (!config_.has_value()) Configure(*config);
  } else if (const auto* open = As<OpenMessage>(record)) {
    Open(*open);
  } else if (const auto* biases = As<OpenBiasMessage>(record)) {
    if (finds(biases->sequence)) sequence->AddBiases(biases->list);
  } else if (const auto* features = As<FeaturesMessage>(record)) {
    if (finds(features->sequence)) sequence->AddFeatures(features->list);
  } else if (const auto* grammar = As<OpenGrammarMessage>(record)) {
    if (finds(grammar->sequence)) sequence->AddGrammar(grammar->list, compile_);
  } else if (const auto* tokens = As<OpenTokensMessage>(record)) {
    if (finds(tokens->sequence)) sequence->AddTokens(tokens->list, *draft_);
  } else if (const auto* close = As<CloseMessage>(record)) {
    std::erase_if(sequences_, [&](const auto& open_one) {
      if (open_one->id != close->sequence) return false;
      draft_->kv.Release(&open_one->trunk.kv);
      draft_->kv.Release(&open_one->scratch);
      return true;
    });
  }
  return KindOf(record) != MessageKind::kShutdown;
}

void Speculator::Configure(const ConfigureMessage& config) {
  config_ = config;
  draft_ = std::make_unique<DraftModel>(model_, config.max_sequences, config.max_context,
                                        ScratchSlots(config, model_->config()));
  // How many rows a pass has depends on how far the engine is ahead: room for the most comes now.
  const std::size_t sequences = config.max_sequences;
  const std::size_t trunk = sequences * (config.max_nodes + 1);
  const std::size_t rows = trunk + kBranchRowsPerPass;
  model_->Reserve(rows, rows);
  draft_->batch.rows.reserve(rows);
  draft_->said.Reserve(kMaxProposal + 1);  // As many as one tree has nodes.
  draft_->batch.block_tables.reserve(2 * sequences);
  // A path is at most one through the tree under verification and one through a branch.
  draft_->batch.tail_slots.reserve(rows * (config.max_nodes + config.max_lookahead + 2));
  draft_->batch.path_tokens.reserve(rows * (config.max_nodes + config.max_lookahead + 2));
  readings_.reserve(sequences);
  trunk_rows_.reserve(trunk);
  const std::size_t wanted =
      config.max_nodes + std::size_t(config.max_cache_budget) * (config.max_nodes + 1);
  wanted_.reserve(wanted);
  work_rows_.reserve(sequences * wanted);
}

void Speculator::Open(const OpenMessage& message) {
  if (!config_.has_value() || Find(message.sequence) != nullptr) return;
  sequences_.push_back(std::make_unique<SpeculatedSequence>(message, *config_, *draft_));
}

SpeculatedSequence* Speculator::Find(SequenceId sequence) {
  for (const auto& candidate : sequences_) {
    if (candidate->id == sequence) return candidate.get();
  }
  return nullptr;
}

bool Speculator::Step() {
  if (draft_ == nullptr) return false;
  const std::int64_t start = NowNs();
  const bool jit = std::any_of(sequences_.begin(), sequences_.end(),
                               [](const auto& sequence) { return sequence->jit; });
  draft_->AllowMaskWork();
  draft_->batch.Clear();
  readings_.clear();
  trunk_rows_.clear();
  work_rows_.clear();
  for (const auto& sequence : sequences_) sequence->Expand(*draft_, retrieval_rates_);
  CollectTrunkRows(jit);
  if (!jit) CollectWorkRows();
  // Without rows, just-in-time proposals may be done; what follows them is then to be prepared.
  if (draft_->batch.rows.empty()) return jit;
  if (config_->delay_us > 0) DelayForTests();

  const bool reads = reading_left_ < reading_rows_;
  Interrupt interrupt{.raised = ChannelReadable, .context = channel_};
  if (reads && reading_rows_ == kLeastReadingRows) interrupt = {};
  const Logits logits = draft_->kv.Forward(draft_->batch, interrupt);
  const bool interrupted = logits.values == nullptr;
  if (reads) {
    reading_rows_ = interrupted ? std::max(reading_rows_ / 2, kLeastReadingRows)
                                : std::min(reading_rows_ * 2, kMostReadingRows);
  }
  if (interrupted) return true;  // The records decide what matters now.
  if (!TakeRows(logits)) return true;
  // Choosing a row's candidates may take as long as its share of the pass. Passes over a prompt lie
  // far beyond the row counts to choose between and would tilt the line.
  if (draft_->batch.rows.size() <= 2 * std::size_t{kBranchRowsPerPass}) {
    const DraftPassMessage pass{.rows = static_cast<std::int32_t>(draft_->batch.rows.size()),
                                .ns = NowNs() - start};
    pass_times_.Add(pass.rows, static_cast<double>(pass.ns) / 1e3);
    Send(*channel_, pass);
  }
  return true;
}

void Speculator::CollectTrunkRows(bool only_jit) {
  reading_left_ = reading_rows_;
  for (const auto& sequence : sequences_) {
    if (!sequence->complete() || (only_jit && !sequence->jit)) continue;
    if (!AppendTrunkRows(sequence.get()) && sequence->jit) FinishJit(sequence.get());
  }
}

bool Speculator::AppendTrunkRows(SpeculatedSequence* sequence) {
  DraftTrunk& trunk = sequence->trunk;
  StaticVector<std::int8_t, kMaxProposal + 1> nodes;  // Whose logits are wanted.
  const int depths = sequence->DepthsAtRoot(*draft_);
  if (trunk.reads()) {
    // Beyond the draft's own context, or without memory, there is nothing to prepare.
    if (trunk.committed() > draft_->max_context) return false;
    int wanted = trunk.committed() - trunk.computed();
    const bool reads = wanted > config_->max_lookahead + 1;  // More than a round's tokens.
    // What takes more than a pass to read is not waited for: the target goes on with one row. (It
    // waited 2 to 3 ms for 200 tokens, four rounds of plain decoding, wherever mode auto tried
    // SSD.)
    if (reads && sequence->jit && wanted > reading_left_) return false;
    if (reads) wanted = std::min(wanted, reading_left_);
    if (wanted == 0) return true;  // In a later pass.
    if (!trunk.Reserve(wanted, *draft_)) return false;
    if (reads) reading_left_ -= wanted;
    RowPlacer placer = draft_->PlacerFor(trunk.kv);
    readings_.push_back({sequence, trunk.AppendCommittedRows(wanted, &placer, &draft_->batch)});
    if (readings_.back().end == trunk.readable()) {
      nodes.push_back(0);
      trunk.AppendMaskRows(depths, &placer, &draft_->batch);
    }
  } else if (!sequence->jit || !sequence->AppendJitRows(*draft_, &nodes)) {
    return false;
  }
  for (const int node : nodes) {
    trunk_rows_.push_back({sequence, {.branch = -1, .node = node, .depths = depths}});
  }
  return true;
}

void Speculator::CollectWorkRows() {
  for (const auto& sequence : sequences_) {
    wanted_.clear();
    sequence->AppendWanted(*draft_, &wanted_);
    for (const WantedRow& wanted : wanted_) work_rows_.push_back({sequence.get(), wanted});
  }
  ChooseWorkRows();
  const SpeculatedSequence* current = nullptr;
  std::optional<RowPlacer> placer;
  int slot = 0;
  std::size_t kept = 0;
  for (WorkRow work : work_rows_) {
    if (work.sequence != current) {
      current = work.sequence;
      placer = draft_->PlacerFor(current->trunk.kv);
      slot = current->scratch_used();
    }
    work.slot = slot;
    if (!work.sequence->AppendRow(*draft_, work.wanted, slot, &*placer)) continue;
    if (work.wanted.branch >= 0) slot += work.wanted.rows;
    work_rows_[kept++] = work;
  }
  work_rows_.resize(kept);
}

void Speculator::ChooseWorkRows() {
  // The most valuable rows. Where values are equal a parent comes before its child.
  const auto by_place = [](const WorkRow& a, const WorkRow& b) {
    return std::tuple(a.sequence->id, a.wanted.branch, a.wanted.node) <
           std::tuple(b.sequence->id, b.wanted.branch, b.wanted.node);
  };
  std::sort(work_rows_.begin(), work_rows_.end(), [&](const WorkRow& a, const WorkRow& b) {
    return a.wanted.value != b.wanted.value ? a.wanted.value > b.wanted.value : by_place(a, b);
  });
  // Each row gets the number of rows that the pass has if this one is the last that it takes.
  std::size_t rows = draft_->batch.rows.size();
  const std::size_t most = rows + kBranchRowsPerPass;
  std::size_t fitting = 0;
  for (; fitting < work_rows_.size(); ++fitting) {
    WorkRow& work = work_rows_[fitting];
    const std::size_t taken = work.wanted.rows;
    if (rows + taken > most && fitting > 0) break;
    rows += taken;
    work.rows = rows;
  }
  work_rows_.resize(
      MostForItsTime(
          fitting, [&](std::size_t i) { return work_rows_[i].wanted.value; },
          [&](std::size_t count) { return pass_times_.us(work_rows_[count - 1].rows); })
          .count);
  // Rows of one sequence must be adjacent; in a table of their own, since rows of committed tokens
  // may stand between.
  std::sort(work_rows_.begin(), work_rows_.end(), by_place);
}

bool Speculator::TakeRows(Logits logits) {
  for (const Reading& reading : readings_) CommitRows(reading.end, &reading.sequence->trunk.kv);
  draft_->said.Begin(draft_->batch, logits);
  PassPlace place{.row = 0, .states = model_->states()};
  for (const WorkRow& work : trunk_rows_) TakeRow(work, &place);
  bool interrupted = false;
  for (const WorkRow& work : work_rows_) {
    // Choosing candidates may take longer than the pass did, and the engine may wait for a
    // just-in-time proposal. (It waited 65 us until its record was read, now 28.)
    interrupted = channel_->Readable();
    if (interrupted) break;
    TakeRow(work, &place);
  }
  FlushBranchTokens();
  return !interrupted;
}

void Speculator::TakeRow(const WorkRow& work, PassPlace* place) {
  SpeculatedSequence& sequence = *work.sequence;
  const WantedRow& wanted = work.wanted;
  if (draft_->leaves_states()) {
    sequence.TakeState(wanted, work.slot, place->states);
    place->states += model_->config().hidden;
  }
  TreeNodes nodes;
  nodes.push_back(static_cast<std::int8_t>(wanted.node));
  RankNodes(work, nodes, /*depth=*/0, place->row);
  const DraftTree& tree = sequence.TreeOf(wanted);
  const bool grows = wanted.branch >= 0 || sequence.jit;
  for (int depth = 1; depth < wanted.depths; ++depth) {
    nodes = grows ? WantedAt(tree, sequence.trunk.shape, depth) : UnrankedAt(tree, depth);
    RankNodes(work, nodes, depth, place->row);
  }
  place->row += wanted.depths;
}

void Speculator::RankNodes(const WorkRow& work, const TreeNodes& nodes, int depth,
                           std::int64_t first) {
  if (nodes.empty()) return;
  SpeculatedSequence& sequence = *work.sequence;
  const auto wanted = [&](int node) {
    return WantedRow{.branch = work.wanted.branch, .node = node};
  };
  draft_->said.Clear();
  for (const int node : nodes) {
    draft_->said.Ask(first, depth, sequence.trunk.last_token(), sequence.PathOf(wanted(node)));
  }
  draft_->said.Answer();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const WantedRow node = wanted(nodes[i]);
    RankNode(sequence, node, draft_->said.At(i), [&](const Ranking& ranking) {
      return depth == 0 ? sequence.TakeRow(work.wanted, work.slot, ranking)
                        : sequence.TakeRootsRanking(node, ranking);
    });
  }
}

template <typename Take>
void Speculator::RankNode(SpeculatedSequence& sequence, const WantedRow& node, const SaidRow& said,
                          const Take& take) {
  const auto path = sequence.PathOf(node);
  std::span<const TokenProbability> distribution;
  const Ranking ranking =
      RankRow(*draft_, said, sequence.sampling, sequence.history, sequence.RequestFor(node, path),
              sequence.draws ? &distribution : nullptr);
  const int added = take(ranking);
  const bool prepares = node.branch >= 0;
  if (prepares) SendBranchTokens(sequence.branches[node.branch], added, sequence);
  if (sequence.draws && (prepares ? added > 0 : sequence.jit)) {
    FlushBranchTokens();
    SendDistribution(sequence, node, distribution);
  }
}

void Speculator::SendBranchTokens(const Branch& branch, int added,
                                  const SpeculatedSequence& sequence) {
  if (outgoing_.sequence != sequence.id || outgoing_.list.size() + Size(added) > kMaxBranchTokens) {
    FlushBranchTokens();
  }
  outgoing_.sequence = sequence.id;
  outgoing_.epoch = sequence.epoch;
  const Proposal& prepared = branch.tree.proposal();
  for (int i = prepared.size() - added; i < prepared.size(); ++i) {
    outgoing_.list.push_back({.node = static_cast<std::int8_t>(branch.outcome.node),
                              .index = static_cast<std::int8_t>(i + 1),
                              .parent = prepared.parents[i],
                              .retrieved = branch.retrieved,
                              .bonus = branch.outcome.bonus,
                              .token = prepared.tokens[i]});
  }
}

void Speculator::FlushBranchTokens() {
  if (outgoing_.list.empty()) return;
  Send(*channel_, outgoing_);
  outgoing_.list.clear();
}

void Speculator::SendDistribution(const SpeculatedSequence& sequence, const WantedRow& wanted,
                                  std::span<const TokenProbability> distribution) {
  DistributionMessage message{.epoch = sequence.epoch,
                              .sequence = sequence.id,
                              .outcome = {},
                              .parent = wanted.node,
                              .jit = wanted.branch < 0,
                              .list = {}};
  if (!message.jit) message.outcome = sequence.branches[wanted.branch].outcome;
  for (const TokenProbability& entry : distribution) message.list.push_back(entry);
  // The engine does not use tokens whose distribution is lost.
  Send(*channel_, message);
}

void Speculator::FinishJit(SpeculatedSequence* sequence) {
  sequence->FinishJit();
  Send(*channel_, ProposalMessage{.epoch = sequence->epoch,
                                  .sequence = sequence->id,
                                  .proposal = sequence->trunk.tree.proposal()});
}

void Speculator::DelayForTests() {
  const std::int64_t delay = delay_noise_() % (config_->delay_us + 1);
  std::this_thread::sleep_for(std::chrono::microseconds(delay));
}

}  // namespace foretoken
