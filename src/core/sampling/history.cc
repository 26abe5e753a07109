#include "core/sampling/history.h"

#include "base/check.h"

namespace foretoken {

TokenHistory::TokenHistory(int vocabulary, int window)
    : prompt_(vocabulary, 0), output_(vocabulary, 0), recent_(std::max(window, 0)) {
  seen_.reserve(vocabulary);
}

void TokenHistory::AddPrompt(std::span<const Token> tokens) {
  for (const Token token : tokens) {
    See(token);
    prompt_[token] = 1;
  }
}

void TokenHistory::AddOutput(Token token) {
  See(token);
  ++output_[token];
  ++outputs_;
  if (constraint_.cursor != nullptr) constraint_.cursor->Push(token);
}

void TokenHistory::See(Token token) {
  FT_CHECK(token >= 0 && token < std::ssize(prompt_), "token {} of {}", token, prompt_.size());
  if (prompt_[token] == 0 && output_[token] == 0) seen_.push_back(token);
  if (!recent_.empty()) recent_[added_ % recent_.size()] = token;
  ++added_;
}

}  // namespace foretoken
