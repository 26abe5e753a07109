#include "ssd/speculator_client.h"

#include <algorithm>

#include "base/clock.h"
#include "grammar/token_constraint.h"
#include "ssd/outcome_record.h"

namespace foretoken {
namespace {

// How long a full channel is given to drain before the speculator counts as stuck.
constexpr std::int64_t kSendPatienceNs = 100'000'000;
constexpr std::int64_t kAliveCheckNs = 5'000'000;
}  // namespace

SpeculatorClient::SpeculatorClient(std::unique_ptr<SpeculatorHost> host,
                                   const ConfigureMessage& config,
                                   std::function<void(const std::string&)> warn,
                                   const ModelIdentity& draft)
    : host_(std::move(host)), config_(config), warn_(std::move(warn)), draft_(draft) {
  Configure();
}

SpeculatorClient::~SpeculatorClient() {
  if (healthy_) Send(ShutdownMessage{});
}

void SpeculatorClient::Configure() {
  Send(HelloMessage{.draft = draft_});
  Send(config_);
}

Status SpeculatorClient::WaitReady(std::int64_t timeout_ns) {
  const std::int64_t deadline = NowNs() + timeout_ns;
  const auto failed = [this](std::string_view what) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the speculator {} {}", host_->Describe(), what)};
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
  if (!healthy_) return;
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
  healthy_ = false;
  needs_healing_ = true;
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
  const auto width = static_cast<std::size_t>(taps.width());
  for (; slot->features < slot->tokens - 1; ++slot->features) {
    SendList<FeaturesMessage>(slot->sequence, std::span(taps.At(slot->features), width));
  }
}

void SpeculatorClient::Poll() {
  Receive();
  if (!refusal_.empty()) Lose(std::exchange(refusal_, {}));
}

void SpeculatorClient::Receive() {
  if (!healthy_) return;
  Channel& channel = host_->channel();
  for (auto record = channel.Receive(); !record.empty(); record = channel.Receive()) {
    Handle(record);
  }
}

void SpeculatorClient::Handle(std::span<const std::byte> record) {
  if (!ready_) {
    if (!refusal_.empty()) return;
    const Status hello = CheckHello(record, draft_);
    ready_ = hello.ok();
    if (!ready_) refusal_ = hello.error().message;
    return;
  }
  if (const auto* branches = As<BranchTokensMessage>(record)) {
    HandleBranchTokens(*branches);
  } else if (const auto* law = As<LawMessage>(record)) {
    HandleLaw(*law);
  } else if (const auto* message = As<ProposalMessage>(record)) {
    Slot* slot = Find(message->sequence);
    if (slot == nullptr || message->epoch != slot->epoch || !slot->awaits_proposal) return;
    slot->proposal = message->proposal;
    slot->has_proposal = true;
  } else if (const auto* pass = As<DraftPassMessage>(record)) {
    if (pass->rows <= 0 || pass->ns <= 0) return;
    draft_passes_ += {.passes = 1, .rows = pass->rows, .ns = pass->ns};
  }
}

void SpeculatorClient::HandleBranchTokens(const BranchTokensMessage& message) {
  Slot* slot = Find(message.sequence);
  if (slot == nullptr) return;
  for (const BranchToken& added : message.list) {
    slot->cache.Append(message.epoch, {added.node, added.bonus}, added.index, added.parent,
                       added.token, added.retrieved);
  }
}

void SpeculatorClient::HandleLaw(const LawMessage& message) {
  Slot* slot = Find(message.sequence);
  if (slot == nullptr || message.epoch != slot->epoch) return;
  if (message.parent < 0 || message.parent > kMaxProposal) return;
  if (message.jit) {
    slot->laws.SetListed(message.parent, message.list);
  } else {
    slot->cache.SetLaw(message.epoch, message.outcome, message.parent, message.list);
  }
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
  slot->has_proposal = wants_jit && !healthy_;
  slot->proposal.Clear();
  slot->laws.Clear();
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

bool SpeculatorClient::TakeProposal(SequenceId sequence, Proposal* proposal, ProposalLaws* laws) {
  Slot* slot = Find(sequence);
  proposal->Clear();
  if (slot == nullptr || !slot->awaits_proposal) return true;
  if (!slot->has_proposal) return false;
  slot->awaits_proposal = false;
  *proposal = slot->proposal;
  if (laws != nullptr) *laws = slot->laws;
  proposal->source = proposal->size() > 0 ? ProposalSource::kJit : ProposalSource::kNone;
  return true;
}

void SpeculatorClient::Wait(std::int64_t timeout_ns) {
  if (healthy_) host_->channel().WaitReadable(timeout_ns);
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
  if (healthy_ && NowNs() >= next_check_ns_) {
    next_check_ns_ = NowNs() + kAliveCheckNs;
    if (!host_->Alive()) Lose("has ended unexpectedly");
  }
  return needs_healing_;
}

void SpeculatorClient::Heal(std::span<const LiveSequence> live) {
  needs_healing_ = false;
  if (restarted_) {
    warn_("the speculator was lost a second time and is not started again");
    return;
  }
  restarted_ = true;
  if (const Status status = host_->Restart(); !status.ok()) {
    warn_("the speculator could not be started again: " + status.error().message);
    return;
  }
  healthy_ = true;
  ready_ = false;
  Configure();
  for (const LiveSequence& sequence : live) {
    if (Slot* slot = Find(sequence.sequence)) SendOpen(sequence, slot);
  }
  if (healthy_) warn_("the speculator was started again: " + host_->Describe());
}

}  // namespace foretoken
