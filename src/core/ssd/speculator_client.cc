#include "core/ssd/speculator_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/integers.h"
#include "base/threads/clock.h"
#include "core/ssd/outcome_record.h"
#include "foretoken/constraint.h"

namespace foretoken {
namespace {

// How long a full channel is given to drain before the speculator counts as stuck.
constexpr std::int64_t kSendPatienceNs = 100'000'000;
constexpr std::int64_t kAliveCheckNs = 5'000'000;

// A just-in-time proposal is waited for so many times as long as its passes usually take, and at
// least so long: a machine that is busy with something else makes the draft slow, not lost.
constexpr double kPassesOfPatience = 100;
constexpr double kLeastPatienceNs = 2e9;
constexpr double kPassWeight = 0.1;  // The weight of the latest pass in the usual time.

constexpr const char* kNonsense = "has sent what makes no sense";

bool IsNode(int node) { return node >= 0 && node <= kMaxProposal; }

// What can be verified whatever it is about: as many parents as tokens, each an earlier node.
bool IsTree(const Proposal& proposal) {
  const std::size_t size = proposal.tokens.size();
  if (size > kMaxProposal || proposal.parents.size() != size) return false;
  for (std::size_t i = 0; i < size; ++i) {
    if (proposal.parents[i] < 0 || proposal.parents[i] > Int(i)) return false;
  }
  return true;
}

}  // namespace

SpeculatorClient::SpeculatorClient(std::unique_ptr<SpeculatorHost> host,
                                   const ConfigureMessage& config,
                                   std::function<void(const std::string&)> warn,
                                   const ModelIdentity& draft)
    : host_(std::move(host)), config_(config), warn_(std::move(warn)), draft_(draft) {
  record_.reserve(Channel::kMaxRecord);
  Configure();
}

SpeculatorClient::~SpeculatorClient() { Send(ShutdownMessage{}); }

void SpeculatorClient::Configure() {
  Send(HelloMessage{.draft = draft_});
  Send(config_);
}

Status SpeculatorClient::WaitReady(std::int64_t timeout_ns) {
  const std::int64_t deadline = NowNs() + timeout_ns;
  const auto failed = [this](std::string_view what) {
    return Unavailable("the speculator {} {}", host_->Describe(), what);
  };
  for (Receive(); !ready_; Receive()) {
    if (!refusal_.empty()) return failed(refusal_);
    if (!host_->Alive()) return failed("ended before it was ready");
    if (NowNs() > deadline) return failed("did not become ready in time");
    host_->channel().WaitReadable(kAliveCheckNs);
  }
  return {};
}

SpeculatorClient::Slot* SpeculatorClient::Find(SequenceId sequence) const {
  for (const auto& slot : slots_) {
    if (slot->sequence == sequence) return slot.get();
  }
  return nullptr;
}

template <typename Message>
void SpeculatorClient::Send(const Message& message) {
  if (lost_) return;
  const auto record = RecordOf(message);
  if (host_->channel().Send(record)) return;
  const std::int64_t deadline = NowNs() + kSendPatienceNs;
  while (!host_->channel().Send(record)) {
    if (NowNs() > deadline || !host_->Alive()) {
      Lose("has stopped listening");
      return;
    }
  }
}

template <typename Message, typename Items>
void SpeculatorClient::SendList(SequenceId sequence, const Items& items) {
  Message message{.sequence = sequence, .list = {}};
  for (const auto& item : items) {
    message.list.push_back(item);
    if (message.list.size() < message.list.capacity()) continue;
    Send(message);
    message.list.clear();
  }
  if (!message.list.empty()) Send(message);
}

void SpeculatorClient::Lose(const std::string& reason) {
  lost_ = true;
  restarts_.Lost(NowNs());
  for (const auto& slot : slots_) {
    slot->cache.Reset(slot->epoch);
    if (slot->awaits_proposal) {
      slot->has_proposal = true;
      slot->proposal.Clear();
    }
  }
  warn_("the speculator " + host_->Describe() + " " + reason +
        "; the output goes on unchanged, without speculation");
}

void SpeculatorClient::Open(const LiveSequence& sequence) {
  std::unique_ptr<Slot> slot;
  if (spare_.empty()) {
    slot = std::make_unique<Slot>();
  } else {
    slot = std::move(spare_.back());
    spare_.pop_back();
  }
  slot->sequence = sequence.sequence;
  slot->epoch = ++last_epoch_;
  slot->awaits_proposal = false;
  slot->has_proposal = false;
  slot->cache.Reserve(config_.max_cache_budget, config_.max_nodes);
  slot->cache.Reset(slot->epoch);
  slots_.push_back(std::move(slot));
  SendOpen(sequence, slots_.back().get());
}

void SpeculatorClient::SendOpen(const LiveSequence& sequence, Slot* slot) {
  slot->plan = *sequence.plan;
  slot->tokens = static_cast<std::int32_t>(sequence.tokens.size());
  slot->features = 0;
  const SamplingParams& sampling = *sequence.sampling;
  const std::string_view grammar =
      sampling.constraint == nullptr ? std::string_view() : sampling.constraint->grammar();
  OpenMessage open{.epoch = slot->epoch,
                   .sequence = sequence.sequence,
                   .tokens = static_cast<std::int32_t>(sequence.tokens.size()),
                   .prompt_tokens = sequence.prompt_tokens,
                   .biases = static_cast<std::int32_t>(sampling.logit_bias.size()),
                   .grammar_bytes = static_cast<std::int32_t>(grammar.size()),
                   .drops_space = sequence.drops_space,
                   .sampling = ToNumbers(sampling),
                   .plan = *sequence.plan,
                   .draws = sequence.draws,
                   .stop_tokens = {}};
  // Stop tokens only spare the speculator useless branches: more than fit may be left out.
  for (const Token token : sequence.stop_tokens) {
    if (open.stop_tokens.size() < kMaxStopTokens) open.stop_tokens.push_back(token);
  }
  Send(open);
  std::vector<OpenBiasMessage::Bias> biases;
  for (const auto& [token, value] : sampling.logit_bias) biases.push_back({token, value});
  SendList<OpenBiasMessage>(sequence.sequence, biases);
  SendList<OpenGrammarMessage>(sequence.sequence, grammar);
  SendFeatures(sequence.taps, slot);
  SendList<OpenTokensMessage>(sequence.sequence, sequence.tokens);
}

void SpeculatorClient::SendFeatures(const TapRows& taps, Slot* slot) {
  if (taps.store == nullptr) return;
  const std::size_t width = taps.width();
  for (; slot->features < slot->tokens - 1; ++slot->features) {
    SendList<FeaturesMessage>(slot->sequence, std::span(taps.At(slot->features), width));
  }
}

void SpeculatorClient::Poll() {
  Receive();
  if (!refusal_.empty()) Lose(std::exchange(refusal_, {}));
}

void SpeculatorClient::Receive() {
  if (lost_) return;
  Channel& channel = host_->channel();
  for (auto record = channel.Receive(); !record.empty(); record = channel.Receive()) {
    record_.assign(record.begin(), record.end());
    if (!Handle(record_)) return Lose(kNonsense);
  }
  if (channel.broken()) Lose(kNonsense);
}

bool SpeculatorClient::Handle(std::span<const std::byte> record) {
  if (!ready_) {
    if (!refusal_.empty()) return true;
    const Status hello = CheckHello(record, draft_);
    ready_ = hello.ok();
    if (!ready_) refusal_ = hello.error().message;
    return true;
  }
  if (KindOf(record) == MessageKind::kHello) return CheckHello(record, draft_).ok();
  if (const auto* branches = As<BranchTokensMessage>(record)) return HandleBranchTokens(*branches);
  if (const auto* distribution = As<DistributionMessage>(record)) {
    return HandleDistribution(*distribution);
  }
  if (const auto* proposal = As<ProposalMessage>(record)) return HandleProposal(*proposal);
  const auto* pass = As<DraftPassMessage>(record);
  return pass != nullptr && HandleDraftPass(*pass);
}

bool SpeculatorClient::HandleBranchTokens(const BranchTokensMessage& message) {
  const bool sense = std::ranges::all_of(message.list, [&](const BranchToken& added) {
    return IsNode(added.node) && added.index >= 1 && added.index <= kMaxProposal &&
           added.parent >= 0 && added.parent < added.index && IsToken(added.bonus) &&
           IsToken(added.token);
  });
  if (!sense) return false;
  Slot* slot = Find(message.sequence);
  if (slot == nullptr) return true;
  for (const BranchToken& added : message.list) {
    slot->cache.Append(message.epoch, {added.node, added.bonus}, added.index, added.parent,
                       added.token, added.retrieved);
  }
  return true;
}

bool SpeculatorClient::HandleDistribution(const DistributionMessage& message) {
  const bool sense = std::ranges::all_of(message.list, [&](const TokenProbability& entry) {
    return IsToken(entry.token) && entry.probability >= 0 && entry.probability <= 1;
  });
  if (!sense || !IsNode(message.parent)) return false;
  Slot* slot = Find(message.sequence);
  if (slot == nullptr || message.epoch != slot->epoch) return true;
  if (message.jit) {
    slot->distributions.SetListed(message.parent, message.list);
  } else {
    slot->cache.SetDistribution(message.epoch, message.outcome, message.parent, message.list);
  }
  return true;
}

bool SpeculatorClient::HandleProposal(const ProposalMessage& message) {
  const auto known = [&](Token token) { return IsToken(token); };
  if (!IsTree(message.proposal) || !std::ranges::all_of(message.proposal.tokens, known)) {
    return false;
  }
  Slot* slot = Find(message.sequence);
  if (slot == nullptr || message.epoch != slot->epoch || !slot->awaits_proposal) return true;
  slot->proposal = message.proposal;
  slot->has_proposal = true;
  return true;
}

bool SpeculatorClient::HandleDraftPass(const DraftPassMessage& message) {
  if (message.rows <= 0 || message.ns <= 0) return false;
  draft_passes_ += {.passes = 1, .rows = message.rows, .ns = message.ns};
  const auto ns = static_cast<double>(message.ns);
  usual_pass_ns_ += (usual_pass_ns_ > 0 ? kPassWeight : 1) * (ns - usual_pass_ns_);
  return true;
}

const CacheAnswer& SpeculatorClient::Lookup(SequenceId sequence, Outcome outcome) {
  static const CacheAnswer kNothing;
  Slot* slot = Find(sequence);
  return slot == nullptr ? kNothing : slot->cache.Lookup(outcome);
}

void SpeculatorClient::PreparedAt(SequenceId sequence, int node,
                                  std::vector<Token>* bonuses) const {
  bonuses->clear();
  if (const Slot* slot = Find(sequence)) slot->cache.BonusesAt(node, bonuses);
}

void SpeculatorClient::SendOutcome(SequenceId sequence, Outcome outcome,
                                   std::span<const Token> committed, const Proposal& proposal,
                                   const SpeculationPlan& plan, bool wants_jit,
                                   const TapRows& taps) {
  Slot* slot = Find(sequence);
  if (slot == nullptr) return;
  slot->tokens += static_cast<std::int32_t>(committed.size());
  SendFeatures(taps, slot);
  if (plan != slot->plan) {
    slot->plan = plan;
    Send(PlanMessage{.sequence = sequence, .plan = plan});
  }
  // The branch that was taken, if one was: what is in it the speculator knows.
  const Proposal* prepared = nullptr;
  if (proposal.source == ProposalSource::kCache) {
    const CacheAnswer& last = slot->cache.answer();
    const CacheAnswer& answer =
        last.hit && last.outcome == outcome ? last : slot->cache.Lookup(outcome);
    if (answer.hit) prepared = &answer.proposal;
  }
  Pack(committed, proposal, prepared, &outcome_);
  slot->epoch = ++last_epoch_;
  slot->cache.Reset(slot->epoch);
  slot->awaits_proposal = wants_jit;
  slot->has_proposal = wants_jit && !healthy();
  slot->proposal.Clear();
  slot->distributions.Clear();
  outcome_.epoch = slot->epoch;
  outcome_.sequence = sequence;
  outcome_.node = static_cast<std::int8_t>(outcome.node);
  outcome_.wants_jit = wants_jit;
  Send(outcome_);
}

void SpeculatorClient::SendRetrieved(SequenceId sequence, const OutcomeList& outcomes) {
  const Slot* slot = Find(sequence);
  if (slot == nullptr || outcomes.empty()) return;
  Send(RetrievedMessage{.epoch = slot->epoch, .sequence = sequence, .list = outcomes});
}

bool SpeculatorClient::TakeProposal(SequenceId sequence, Proposal* proposal,
                                    DraftDistributions* distributions) {
  Slot* slot = Find(sequence);
  proposal->Clear();
  if (slot == nullptr || !slot->awaits_proposal) return true;
  if (!slot->has_proposal) return false;
  slot->awaits_proposal = false;
  *proposal = slot->proposal;
  if (distributions != nullptr) *distributions = slot->distributions;
  proposal->source = proposal->size() > 0 ? ProposalSource::kJit : ProposalSource::kNone;
  return true;
}

void SpeculatorClient::Wait(std::int64_t timeout_ns) {
  if (!lost_) host_->channel().WaitReadable(timeout_ns);
}

std::int64_t SpeculatorClient::ProposalPatienceNs(int lookahead) const {
  // One pass more: the draft may have to read what was committed.
  const double usual = (lookahead + 1) * usual_pass_ns_;
  constexpr auto kMost = static_cast<double>(kReadyPatienceNs);  // However it lies of its passes.
  return std::llround(std::clamp(kPassesOfPatience * usual, kLeastPatienceNs, kMost));
}

void SpeculatorClient::LoseSilent() {
  if (!lost_) Lose("does not answer");
}

void SpeculatorClient::Close(SequenceId sequence) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const auto& slot) { return slot->sequence == sequence; });
  if (found == slots_.end()) return;
  spare_.push_back(std::move(*found));
  slots_.erase(found);
  Send(CloseMessage{.sequence = sequence});
}

bool SpeculatorClient::NeedsHealing() {
  const std::int64_t now = NowNs();
  if (lost_) return restarts_.Due(now);
  if (now < next_check_ns_) return false;
  next_check_ns_ = now + kAliveCheckNs;
  if (!host_->Alive()) {
    Lose("has ended unexpectedly");
  } else if (!ready_ && ready_by_ns_ > 0 && now > ready_by_ns_) {
    Lose("did not become ready in time");
  }
  return lost_ && restarts_.Due(NowNs());
}

void SpeculatorClient::Heal(std::span<const LiveSequence> live) {
  restarts_.Started(NowNs());
  if (const Status status = host_->Restart(); !status.ok()) {
    restarts_.Lost(NowNs());
    warn_(fmt::format("the speculator could not be started again: {}; the next try comes in {} s",
                      status.error().message, restarts_.pause_ns() / 1'000'000'000));
    return;
  }
  lost_ = false;
  ready_ = false;
  usual_pass_ns_ = 0;
  ready_by_ns_ = NowNs() + kReadyPatienceNs;
  Configure();
  for (const LiveSequence& sequence : live) {
    if (Slot* slot = Find(sequence.sequence)) SendOpen(sequence, slot);
  }
  if (!lost_) warn_("the speculator was started again: " + host_->Describe());
}

}  // namespace foretoken
