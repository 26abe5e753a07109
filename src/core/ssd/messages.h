#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/static_vector.h"
#include "core/backend/taps.h"
#include "core/prediction/branch_rows.h"
#include "core/speculation/draft_distribution.h"
#include "core/speculation/plan.h"
#include "core/speculation/proposal.h"
#include "core/ssd/retrieved_outcomes.h"
#include "foretoken/sampling.h"
#include "foretoken/types.h"

namespace foretoken {

/// What of SamplingParams crosses the channel as it is: its numbers, without which drafts would get
/// worse silently. Biases and the constraint have records of their own, and who is told of
/// probabilities is not the speculator's business.
struct SamplingNumbers {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) type name;
#include "foretoken/tables/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
  std::uint64_t seed;
};

inline SamplingNumbers ToNumbers(const SamplingParams& sampling) {
  return {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) .name = sampling.name,
#include "foretoken/tables/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
      .seed = sampling.seed};
}

inline SamplingParams FromNumbers(const SamplingNumbers& numbers) {
  return {
#define FORETOKEN_SAMPLING_FIELD(type, name, ...) .name = numbers.name,
#include "foretoken/tables/sampling_fields.inc"
#undef FORETOKEN_SAMPLING_FIELD
      .seed = numbers.seed};
}

/// Records on the channel: trivially copyable structs, each starting with its kind. Of a `list`,
/// which is a struct's last field, only the elements that there are cross. Tokens only;
/// probabilities cross for sequences that are verified by rejection and for no others.
enum class MessageKind : std::uint32_t {
  kNone,
  kHello,  // Both ways, first of all. Keeps its number in every version.
  // Engine to speculator.
  kConfigure,
  kOpen,
  kOpenTokens,
  kOpenBias,
  kOpenGrammar,
  kFeatures,
  kPlan,
  kOutcome,
  kRetrieved,
  kClose,
  kShutdown,
  // Speculator to engine.
  kBranchTokens,
  kDistribution,
  kProposal,
  kDraftPass,
};

inline constexpr int kMaxStopTokens = 16;
inline constexpr int kTokensPerRecord = 896;
inline constexpr int kBiasPerRecord = 448;
inline constexpr int kGrammarBytesPerRecord = 3584;
inline constexpr int kFeaturesPerRecord = 1792;
/// Branch tokens of a draft pass, at most.
inline constexpr int kMaxBranchTokens = kBranchRowsPerPass * kMaxTreeWidth;

/// How much the speculator prepares and for how many sequences.
struct ConfigureMessage {
  MessageKind kind = MessageKind::kConfigure;
  std::int32_t max_lookahead = 0;     ///< K of any plan, at most.
  std::int32_t max_nodes = 0;         ///< Proposal tokens of any plan, at most.
  std::int32_t max_cache_budget = 0;  ///< B of any plan, at most.
  std::int32_t max_sequences = 0;
  std::int32_t max_context = 0;
  std::int32_t vocabulary = 0;  ///< The target's: tokens of either side lie below it.
  std::int64_t delay_us = 0;    ///< Tests: sleep up to this long before each draft step.

  /// Room for the branches' rows of one sequence and round: one path of each. Bushy trees that need
  /// more stay narrower.
  std::int32_t scratch_slots() const { return max_cache_budget * max_lookahead; }
};

/// A sequence begins (or begins again after a restart) at `epoch`, with `tokens` committed tokens
/// to follow in kOpenTokens records, `biases` in kOpenBias records and, before the tokens,
/// `grammar_bytes` of the constraint's grammar in kOpenGrammar records.
struct OpenMessage {
  MessageKind kind = MessageKind::kOpen;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  std::int32_t tokens = 0;
  std::int32_t prompt_tokens = 0;  ///< The first of them; the rest are output.
  std::int32_t biases = 0;
  std::int32_t grammar_bytes = 0;
  bool drops_space = false;  ///< As in ConstraintCursor.
  SamplingNumbers sampling{};
  SpeculationPlan plan;
  /// Proposals are verified by rejection: drawn, and sent with their distributions.
  bool draws = false;
  StaticVector<Token, kMaxStopTokens> stop_tokens;  ///< Branches end there.
};

struct OpenTokensMessage {
  MessageKind kind = MessageKind::kOpenTokens;
  SequenceId sequence = 0;
  StaticVector<Token, kTokensPerRecord> list;
};

struct OpenBiasMessage {
  struct Bias {
    Token token;
    float value;
  };
  MessageKind kind = MessageKind::kOpenBias;
  SequenceId sequence = 0;
  StaticVector<Bias, kBiasPerRecord> list;
};

struct OpenGrammarMessage {
  MessageKind kind = MessageKind::kOpenGrammar;
  SequenceId sequence = 0;
  StaticVector<char, kGrammarBytesPerRecord> list;
};

/// What the target has kept of committed positions (TapStore), for a draft that reads it: rows of
/// FeatureSpec::tap_width numbers, one behind the other from position 0 on, in pieces. Those of all
/// positions but the last come before the tokens of an Open and before each outcome.
struct FeaturesMessage {
  MessageKind kind = MessageKind::kFeatures;
  SequenceId sequence = 0;
  StaticVector<BFloat16, kFeaturesPerRecord> list;
};

/// The plan of the sequence from its next outcome on.
struct PlanMessage {
  MessageKind kind = MessageKind::kPlan;
  SequenceId sequence = 0;
  SpeculationPlan plan;
};

/// The outcome of a round and what the engine verifies next. `epoch` is that of the next round:
/// what the speculator prepares for it carries this number, and nothing older can hit. Packed and
/// unpacked in core/ssd/outcome_record.h.
struct OutcomeMessage {
  struct Entry {
    Token token = -1;
    std::int8_t parent = 0;  ///< The parent node of a proposed token.
  };
  MessageKind kind = MessageKind::kOutcome;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  std::uint64_t kept = 0;  ///< Where a branch is taken: a bit for each of its nodes that stays.
  std::int8_t node = 0;    ///< Deepest accepted node of the proposal.
  bool wants_jit = false;  ///< The engine waits for a kProposal.
  bool taken = false;      ///< What is verified next was prepared for this outcome.
  ProposalSource source = ProposalSource::kNone;  ///< The source of what is verified next.
  std::uint8_t committed = 0;  ///< How many entries are committed tokens; the others come next.
  StaticVector<Entry, 2 * kMaxProposal + 1> list;

  int proposed() const { return std::ssize(list) - committed; }
};

/// What retrieval expects beside the tree under verification of round `epoch`.
struct RetrievedMessage {
  MessageKind kind = MessageKind::kRetrieved;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  OutcomeList list;
};

struct CloseMessage {
  MessageKind kind = MessageKind::kClose;
  SequenceId sequence = 0;
};

struct ShutdownMessage {
  MessageKind kind = MessageKind::kShutdown;
};

/// One more node of the proposal prepared for outcome (node, bonus).
struct BranchToken {
  std::int8_t node = 0;
  std::int8_t index = 0;   ///< The new node's number, from 1: a lost record shows as a gap.
  std::int8_t parent = 0;  ///< An earlier node of the prepared proposal; 0: its root, the bonus.
  bool retrieved = false;  ///< Retrieval had the idea to prepare for this outcome, not the draft.
  Token bonus = -1;
  Token token = -1;
};

/// What one draft pass has added to the branches of round `epoch`.
struct BranchTokensMessage {
  MessageKind kind = MessageKind::kBranchTokens;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  StaticVector<BranchToken, kMaxBranchTokens> list;
};

/// The distribution that the children of one prepared node were drawn from. Follows their tokens
/// where they were prepared for an outcome, and comes before the kProposal where they were drafted
/// just in time.
struct DistributionMessage {
  MessageKind kind = MessageKind::kDistribution;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  Outcome outcome;          ///< What was prepared for; unused where `jit`.
  std::int32_t parent = 0;  ///< The node, of the prepared proposal.
  bool jit = false;
  StaticVector<TokenProbability, kMaxDistributionTokens> list;
};

/// A just-in-time proposal for round `epoch`; may be empty.
struct ProposalMessage {
  MessageKind kind = MessageKind::kProposal;
  std::uint32_t epoch = 0;
  SequenceId sequence = 0;
  Proposal proposal;
};

/// A step of the speculator that was no prompt's: how many rows, and how long from the choice of
/// rows to the last token handed over.
struct DraftPassMessage {
  MessageKind kind = MessageKind::kDraftPass;
  std::int32_t rows = 0;
  std::int64_t ns = 0;
};

/// "FTSD", to tell a speculator from anything else.
inline constexpr std::uint32_t kProtocolMagic = 0x44535446;
/// One more with every change of what a record means.
inline constexpr std::uint32_t kProtocolVersion = 7;
/// The sizes of all records together, by which a change of any of them shows.
inline constexpr std::uint32_t kRecordBytes =
    sizeof(ConfigureMessage) + sizeof(OpenMessage) + sizeof(OpenTokensMessage) +
    sizeof(OpenBiasMessage) + sizeof(OpenGrammarMessage) + sizeof(FeaturesMessage) +
    sizeof(PlanMessage) + sizeof(OutcomeMessage) + sizeof(RetrievedMessage) + sizeof(CloseMessage) +
    sizeof(BranchTokensMessage) + sizeof(DistributionMessage) + sizeof(ProposalMessage) +
    sizeof(DraftPassMessage);

/// The kind of a record; one too short to have a kind is a kNone.
inline MessageKind KindOf(std::span<const std::byte> record) {
  MessageKind kind = MessageKind::kNone;
  if (record.size() >= sizeof(kind)) std::memcpy(&kind, record.data(), sizeof(kind));
  return kind;
}

/// A message that ends in a list.
template <typename Message>
concept HasList = requires(const Message& message) {
  message.list;
};

/// The bytes of a message whose list has `listed` elements.
template <HasList Message>
constexpr std::size_t BytesFor(std::size_t listed) {
  using List = decltype(Message::list);
  return sizeof(Message) - (List::capacity() - listed) * sizeof(*List().begin());
}

/// What of the message crosses the channel.
template <typename Message>
std::span<const std::byte> RecordOf(const Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  const auto bytes = std::as_bytes(std::span(&message, 1));
  if constexpr (HasList<Message>) return bytes.first(BytesFor<Message>(message.list.size()));
  return bytes;
}

/// The record as a message, or nullptr where it is of another kind or its size is wrong.
template <typename Message>
const Message* As(std::span<const std::byte> record) {
  constexpr MessageKind kKind = Message{}.kind;
  if (KindOf(record) != kKind) return nullptr;
  const auto* message = reinterpret_cast<const Message*>(record.data());
  if constexpr (HasList<Message>) {
    if (record.size() < BytesFor<Message>(0)) return nullptr;
    if (message->list.size() > message->list.capacity()) return nullptr;
  }
  return record.size() == RecordOf(*message).size() ? message : nullptr;
}

}  // namespace foretoken
