#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/chat_format.h"
#include "foretoken/request.h"

namespace foretoken::server {

// What the engine emits, on its way to a reply.

/// By TokenOrigin.
inline constexpr std::array<std::string_view, 3> kOriginNames = {"accepted", "fallback", "bonus"};

/// One emitted token, kept where somebody asked for more than text.
struct TokenPart {
  Token token = -1;
  TokenOrigin origin = TokenOrigin::kBonus;
  std::size_t text_bytes = 0;  ///< Its share of the burst's text.
  std::size_t characters = 0;  ///< Its share of the burst's text in characters.
  std::vector<TokenLogprob> logprobs;
};

/// A round as `speculation_trace` shows it.
struct RoundTrace {
  int round = 0;
  Mode mode = Mode::kAr;
  ProposalSource source = ProposalSource::kNone;
  std::vector<Token> proposed;
  int accepted = 0;
  std::optional<bool> hit;
  double milliseconds = 0;
};

struct Ending {
  FinishReason reason = FinishReason::kCancelled;
  RequestStats stats;
  Mode mode = Mode::kAr;  ///< The mode of the last round.
};

/// What one choice gained: in one round where rounds are traced, otherwise since it was last taken.
struct Burst {
  int choice = 0;
  /// The prompt's, where their log-probabilities were asked for, before all else. The first has
  /// none of its own.
  std::vector<TokenPart> prompt;
  std::vector<float> embedding;  ///< The prompt's, where it was asked for, with the ending.
  std::string text;
  /// The parts of a chat's answer that the text has, as far as is certain.
  std::vector<ChatPart> parts;
  std::vector<TokenPart> tokens;    ///< With `Detail::kTokens` and above.
  std::optional<RoundTrace> round;  ///< With `Detail::kRounds`.
  std::optional<Ending> ending;     ///< With the choice's last burst.
};

}  // namespace foretoken::server
