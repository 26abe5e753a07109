#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/adapter.h"
#include "foretoken/sampling.h"
#include "foretoken/speculation.h"
#include "foretoken/types.h"

namespace foretoken {

class DatastoreTenant;

/// When a sequence ends, besides the model's end-of-sequence tokens.
struct StopRules {
  /// Output tokens; the context limit ends a sequence earlier. 0 where only the prompt's
  /// log-probabilities or its embedding are wanted.
  int max_tokens = 256;
  std::vector<Token> stop_tokens;
  std::vector<std::string> stop_strings;  ///< Cut from the text; need a tokenizer.
  bool ignore_eos = false;
};

enum class FinishReason {
  kEndOfSequence,  ///< An end-of-sequence token of the model.
  kStopToken,
  kStopString,
  kMaxTokens,
  kGrammarEnd,    ///< The output matches its grammar, and nothing can follow.
  kGrammarStuck,  ///< The grammar is too ambiguous to be followed any further (StateGraph).
  kContextFull,   ///< The model's or the engine's context limit.
  /// The target computed infinite numbers or NaN, so there is no next token (NotFiniteMessage).
  kNotFinite,
  kCancelled,
};
std::string_view FinishReasonName(FinishReason reason);

/// What happened, and what may be done, in a sentence about a sequence of the model called `model`
/// that ended as kNotFinite.
std::string NotFiniteMessage(std::string_view model);

/// How an emitted token came to be.
enum class TokenOrigin : std::uint8_t {
  kAccepted,  ///< Proposed by the draft model (in SSD: prepared in the speculation cache).
  kFallback,  ///< Proposed after a cache miss (just-in-time draft or n-gram).
  kBonus,     ///< The target's own choice after the accepted part (every token of AR).
};

struct EmittedToken {
  Token token = -1;
  TokenOrigin origin = TokenOrigin::kBonus;
  /// Text that became final with this token; a stop string never shows. Empty without tokenizer.
  std::string_view text;
  /// The chosen token's log-probability, then the most likely ones; empty unless asked for.
  const std::vector<TokenLogprob>* logprobs = nullptr;
};

/// A prompt with its log-probabilities. Borrowed for the call.
struct ScoredPrompt {
  std::span<const Token> tokens;
  /// The log-probabilities of each token after the first, which follows nothing: its own, then
  /// those of the most likely tokens in its place, as for emitted tokens.
  std::span<const std::vector<TokenLogprob>> logprobs;
};

/// How the target's states of a prompt's rows (the final norm's output) become one vector, which is
/// then divided by its length.
enum class Pooling {
  kMean,  ///< Their mean.
  kLast,  ///< The last one.
};

/// What one request cost and how its speculation went.
struct RequestStats {
  int prompt_tokens = 0;
  int cached_prompt_tokens = 0;  ///< Found in the prefix cache.
  int output_tokens = 0;
  int preemptions = 0;
  int stop_string = -1;  ///< Which of the request's stop strings ended it; -1: none.
  std::int64_t submitted_ns = 0;
  std::int64_t first_token_ns = 0;  ///< Without output: when what is asked of the prompt came.
  std::int64_t finished_ns = 0;

  int rounds = 0;                   ///< Target passes that emitted tokens.
  int proposed = 0;                 ///< Proposal tokens verified.
  int accepted = 0;                 ///< Proposal tokens accepted.
  Lossy lossy_rule = Lossy::kNone;  ///< EngineOptions::lossy, where it may have been used.
  /// Proposal tokens accepted by EngineOptions::lossy in place of the target's choice.
  int lossy = 0;
  int lookups_partial = 0;  ///< Cache lookups at k < K (every proposal token there was rejected).
  int hits_partial = 0;
  int lookups_full = 0;  ///< Cache lookups at k = K (at a leaf, and empty proposals).
  int hits_full = 0;
  int hits_retrieved = 0;  ///< Cache hits on outcomes that only retrieval had thought of.
  int fallbacks = 0;       ///< Misses answered by a non-empty fallback proposal.
  /// Rounds in which some proposal token i + 1 steps below the root was verified, and one was
  /// accepted, given that its parent was.
  std::array<int, kMaxProposal> reached_at{};
  std::array<int, kMaxProposal> accepted_at{};

  /// Adds another's counts; times stay.
  void AddCounts(const RequestStats& other) {
    prompt_tokens += other.prompt_tokens;
    cached_prompt_tokens += other.cached_prompt_tokens;
    output_tokens += other.output_tokens;
    preemptions += other.preemptions;
    rounds += other.rounds;
    proposed += other.proposed;
    accepted += other.accepted;
    if (other.lossy_rule != Lossy::kNone) lossy_rule = other.lossy_rule;
    lossy += other.lossy;
    lookups_partial += other.lookups_partial;
    hits_partial += other.hits_partial;
    lookups_full += other.lookups_full;
    hits_full += other.hits_full;
    hits_retrieved += other.hits_retrieved;
    fallbacks += other.fallbacks;
    for (std::size_t i = 0; i < reached_at.size(); ++i) {
      reached_at[i] += other.reached_at[i];
      accepted_at[i] += other.accepted_at[i];
    }
  }
  /// Tokens emitted per round.
  double acceptance_length() const {
    return rounds == 0 ? 0 : static_cast<double>(output_tokens) / rounds;
  }
  /// Output tokens after the first, per second after the first: decoding without prefill.
  double decode_tokens_per_second() const {
    const auto span = static_cast<double>(finished_ns - first_token_ns);
    return output_tokens < 2 || span <= 0 ? 0 : (output_tokens - 1) * 1e9 / span;
  }
};

/// One round of a sequence, as seen after verification. Borrowed for the call.
struct RoundRecord {
  int round = 0;          ///< The number of this sequence's round, from 1.
  Mode mode = Mode::kAr;  ///< The mode of the plan that the proposal was made by.
  int lookahead = 0;      ///< K of that plan.
  ProposalSource source = ProposalSource::kNone;
  /// What was verified: a tree whose node 0 is the last token before; node i + 1 carries
  /// proposed[i] and hangs below node parents[i] <= i.
  std::span<const Token> proposed;
  std::span<const std::int8_t> parents;
  int node = 0;                 ///< The deepest accepted node.
  Token bonus = -1;             ///< The target's own token after it; -1: none (kNotFinite).
  int accepted = 0;             ///< Proposal tokens on the accepted path.
  std::optional<int> hit_rank;  ///< On a hit: how many likelier bonus tokens were prepared there.
  /// Whether the speculation cache had this outcome (SSD); none where it was not asked.
  std::optional<bool> hit;
  std::int64_t round_ns = 0;  ///< Since the end of the pass before.
};

/// Told of a request's progress by the engine's thread, after the next round's speculation is on
/// its way. Must not call back into the engine except Cancel.
class RequestListener {
 public:
  virtual ~RequestListener() = default;
  /// Comes once and before any round, where a request asks for its prompt's log-probabilities.
  virtual void OnPrompt(SequenceId /*sequence*/, const ScoredPrompt& /*prompt*/) {}
  /// Comes once, where a request asks for its prompt's embedding [hidden], of length 1. Borrowed
  /// for the call.
  virtual void OnEmbedding(SequenceId /*sequence*/, std::span<const float> /*embedding*/) {}
  /// Comes before the tokens of the round.
  virtual void OnRound(SequenceId /*sequence*/, const RoundRecord& /*round*/) {}
  virtual void OnToken(SequenceId sequence, const EmittedToken& token) = 0;
  virtual void OnFinish(SequenceId sequence, FinishReason reason, const RequestStats& stats) = 0;
};

/// One generation. The listener must outlive it.
struct Request {
  std::vector<Token> prompt;
  SamplingParams sampling;
  StopRules stop;
  /// Log-probabilities of the prompt's tokens: -1: none; 0: of these; n: and of the n most likely
  /// in the place of each. All of such a prompt is computed, cached prefixes or not.
  int prompt_logprobs = -1;
  /// The prompt's embedding, and nothing else: `stop.max_tokens` is 0. For a mean all of the prompt
  /// is computed, cached prefixes or not.
  std::optional<Pooling> embedding;
  std::optional<PlanOptions> plan;  ///< What differs from the engine's own.
  /// The adapter that the target uses; the draft proposes without it. Prefixes are shared only with
  /// requests of the same adapter and scale.
  AdapterUse adapter = {};
  /// The output's text goes on where the prompt's ends, so a leading space belongs to it; false
  /// for an answer (a chat turn), which starts a text of its own.
  bool continues_text = true;
  /// Where retrieval looks beside the sequence itself, and what the output enters when it is
  /// finished; null: neither. Its folder outlives the engine.
  std::shared_ptr<DatastoreTenant> datastore;
  bool learn = true;  ///< False: nothing learns from it, neither datastore nor draft.
  /// Sequences of one group share what a sequence of another has: none of them begins, or goes on,
  /// while a group waits that has nothing running. 0: a group of its own.
  std::uint64_t group = 0;
  /// Cached prefixes, and in mode trie the texts of ended sequences, are found only by requests of
  /// the same number, so that how much was found tells nothing about the texts of others.
  std::uint64_t prefix_scope = 0;
  /// What the output may turn out to be, perhaps with differences: mode protocol copies from it. It
  /// changes how fast tokens come, and none of them.
  std::vector<Token> prediction;
  RequestListener* listener = nullptr;
};

}  // namespace foretoken
