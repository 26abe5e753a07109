#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/kv/tap_rows.h"
#include "core/speculation/proposal.h"
#include "core/ssd/channel.h"
#include "core/ssd/hello.h"
#include "core/ssd/messages.h"
#include "core/ssd/restart_schedule.h"
#include "core/ssd/speculation_cache.h"
#include "foretoken/sampling.h"
#include "foretoken/stats.h"

namespace foretoken {

/// Runs a speculator somewhere (a thread, a process) and owns the channel to it. Implemented in
/// src/core/transport.
class SpeculatorHost {
 public:
  virtual ~SpeculatorHost() = default;
  virtual Channel& channel() = 0;
  /// Whether the speculator still runs; false after a crash or a kill.
  virtual bool Alive() = 0;
  /// Starts a fresh speculator on a fresh channel after the last one was lost. Where that cannot be
  /// done now it may be tried again.
  virtual Status Restart() = 0;
  /// "on cores 1", "process 4711 on cores 1": for messages.
  virtual std::string Describe() const = 0;
};

/// What the speculator must know of a sequence that (re)opens. All memory is borrowed.
struct LiveSequence {
  SequenceId sequence = 0;
  std::span<const Token> tokens;  ///< Committed so far, prompt first.
  std::int32_t prompt_tokens = 0;
  const SamplingParams* sampling = nullptr;
  const SpeculationPlan* plan = nullptr;
  bool draws = false;  ///< Verified by rejection.
  std::span<const Token> stop_tokens;
  bool drops_space = false;  ///< As in ConstraintCursor.
  TapRows taps;              ///< For drafts that read them: of all tokens but the last.
};

/// The engine's side of SSD: tells the speculator of outcomes and keeps the speculation cache that
/// the speculator fills. Never blocks the engine: a dead, stuck or slow speculator means misses.
/// Nothing that the speculator says is believed before it was checked: one that says what makes no
/// sense counts as lost. Belongs to the engine's thread.
class SpeculatorClient {
 public:
  /// How long a speculator may load its model.
  static constexpr std::int64_t kReadyPatienceNs = 120'000'000'000;

  /// `warn` receives one sentence when the speculator is lost or has been restarted. A speculator
  /// of another version, or with another model than `draft`, is not listened to.
  SpeculatorClient(std::unique_ptr<SpeculatorHost> host, const ConfigureMessage& config,
                   std::function<void(const std::string&)> warn, const ModelIdentity& draft = {});
  ~SpeculatorClient();

  /// Waits until the speculator has loaded its model; an error if that is not the right one.
  Status WaitReady(std::int64_t timeout_ns = kReadyPatienceNs);

  /// Starts pre-speculation for a sequence, from its prompt on.
  void Open(const LiveSequence& sequence);

  /// Takes in what the speculator has sent so far.
  void Poll();

  /// The speculator's passes that Poll has learned of since the last call.
  DraftPasses TakeDraftPasses() { return std::exchange(draft_passes_, {}); }

  /// What is prepared for this outcome of the sequence's current round. Valid until the next call
  /// that is about the sequence or Poll.
  const CacheAnswer& Lookup(SequenceId sequence, Outcome outcome);

  /// Bonus tokens prepared at `node` in the current round: for scripted runs.
  void PreparedAt(SequenceId sequence, int node, std::vector<Token>* bonuses) const;

  /// Reports an outcome and the proposal that will be verified next. With `wants_jit` the
  /// proposal is empty and TakeProposal will have one. `taps`, of drafts that read them, are there
  /// of all tokens but the last committed one.
  void SendOutcome(SequenceId sequence, Outcome outcome, std::span<const Token> committed,
                   const Proposal& proposal, const SpeculationPlan& plan, bool wants_jit,
                   const TapRows& taps = {});

  /// Tells what retrieval expects beside the proposal under verification: the speculator prepares
  /// for these outcomes too, within the same budget.
  void SendRetrieved(SequenceId sequence, const OutcomeList& outcomes);

  /// Fetches the just-in-time proposal asked for in the last outcome. False while it is on its
  /// way; true with an empty proposal when there will be none (speculator lost).
  /// `distributions` gets what it was drawn from, for sequences that draw.
  bool TakeProposal(SequenceId sequence, Proposal* proposal,
                    DraftDistributions* distributions = nullptr);

  /// Waits for news for at most `timeout_ns`.
  void Wait(std::int64_t timeout_ns);

  /// How long a just-in-time proposal of `lookahead` tokens may take: far longer than the draft
  /// usually needs, however busy the machine is.
  std::int64_t ProposalPatienceNs(int lookahead) const;
  /// A proposal was waited for that long: whoever does not answer is lost, though it may be alive.
  void LoseSilent();

  void Close(SequenceId sequence);

  /// Restarts a lost speculator and tells it of `live` sequences again; warns of what it does.
  void Heal(std::span<const LiveSequence> live);
  /// Whether Heal has something to do. Notices a speculator that has ended; cheap, asks the host at
  /// most every few milliseconds.
  bool NeedsHealing();
  /// Whether a speculator is there to answer: none is while one is lost, or still loads its model.
  bool healthy() const { return !lost_ && ready_; }

 private:
  struct Slot {
    SequenceId sequence = 0;
    std::uint32_t epoch = 0;
    bool awaits_proposal = false;
    bool has_proposal = false;
    SpeculationPlan plan;              // As the speculator knows it.
    std::int32_t tokens = 0;           // How many tokens the speculator knows.
    std::int32_t features = 0;         // For how many positions it has the features.
    Proposal proposal;                 // Drafted just in time.
    DraftDistributions distributions;  // What the just-in-time proposal was drawn from.
    SpeculationCache cache;
  };
  Slot* Find(SequenceId sequence) const;
  template <typename Message>
  void Send(const Message& message);
  /// Sends `items` in as many messages as it takes.
  template <typename Message, typename Items>
  void SendList(SequenceId sequence, const Items& items);
  // Whether the record makes sense; what does not is not used.
  bool Handle(std::span<const std::byte> record);
  bool HandleBranchTokens(const BranchTokensMessage& message);
  bool HandleDistribution(const DistributionMessage& message);
  bool HandleProposal(const ProposalMessage& message);
  bool HandleDraftPass(const DraftPassMessage& message);
  // Tokens are those of the target's vocabulary.
  bool IsToken(Token token) const { return token >= 0 && token < config_.vocabulary; }
  void SendOpen(const LiveSequence& sequence, Slot* slot);
  /// What it lacks of all positions but the last.
  void SendFeatures(const TapRows& taps, Slot* slot);
  void Configure();
  void Receive();
  void Lose(const std::string& reason);

  std::unique_ptr<SpeculatorHost> host_;
  ConfigureMessage config_;
  std::function<void(const std::string&)> warn_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Slot>> spare_;
  ModelIdentity draft_;
  OutcomeMessage outcome_;         // Reused: only what is sent of it is written.
  std::vector<std::byte> record_;  // A copy: the speculator can still write to what it has sent.
  DraftPasses draft_passes_;
  double usual_pass_ns_ = 0;  // The time of a draft pass, lately.
  bool ready_ = false;        // The speculator has said hello.
  // Why the speculator was refused, where it has said anything but hello.
  std::string refusal_;
  std::uint32_t last_epoch_ = 0;  // Never reused, so that a reopened sequence hits nothing stale.
  bool lost_ = false;
  RestartSchedule restarts_;
  std::int64_t next_check_ns_ = 0;
  std::int64_t ready_by_ns_ = 0;  // When one that was restarted must be ready.
};

}  // namespace foretoken
