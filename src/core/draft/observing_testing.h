#pragma once

// For tests: decodes by a drafter as the engine does, with a target that a function stands for.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "base/numbers/integers.h"
#include "core/backend/testing/reference_backend.h"
#include "core/draft/registry.h"
#include "core/sampling/sampler.h"
#include "core/speculation/verify.h"

namespace foretoken {

class ScriptedDecoding {
 public:
  static constexpr int kVocabulary = 8;
  /// Writes the logits behind a text.
  using Target = std::function<void(std::span<const Token> text, std::span<float> row)>;

  /// A target that is sure of the next token.
  template <typename Next>
  static Target Sure(Next next) {
    return [next](std::span<const Token> text, std::span<float> row) {
      std::ranges::fill(row, 0.0F);
      row[next(text)] = 10.0F;
    };
  }

  explicit ScriptedDecoding(DrafterId drafter, Target target) : target_(std::move(target)) {
    drafter_ = MakeDrafter(
        drafter, {.vocabulary = kVocabulary, .max_sequences = 4, .backend = backend_.get()});
  }

  Drafter& drafter() { return *drafter_; }
  void Become(Target target) { target_ = std::move(target); }

  struct Sequence {
    SequenceId id = 1;
    std::vector<Token> tokens;
    std::uint64_t scope = 0;
    int rounds = 0;
    Proposal proposal;  // The proposal of the last round.
  };

  /// One round, whose proposals keep to these limits; returns how many tokens it gave.
  std::size_t Round(Sequence* sequence) {
    DraftContext context{.sequence = sequence->id,
                         .tokens = sequence->tokens,
                         .sampling = &sampling,
                         .history = &history_,
                         .scope = sequence->scope,
                         .lookahead = lookahead,
                         .max_nodes = max_nodes,
                         .window = window,
                         .guesses = guesses,
                         .proposal = &sequence->proposal};
    drafter_->Propose(std::span(&context, 1));
    return Verify(sequence);
  }

  /// The pass that computes the prompt.
  void Prefill(Sequence* sequence) {
    sequence->proposal.Clear();
    Verify(sequence);
  }

  /// Decodes `tokens` behind a prompt.
  Sequence Decode(std::vector<Token> prompt, int tokens, std::uint64_t scope = 0) {
    Sequence sequence{.id = ++last_, .tokens = std::move(prompt), .scope = scope};
    const std::size_t end = sequence.tokens.size() + Size(tokens);
    Prefill(&sequence);
    while (sequence.tokens.size() < end) Round(&sequence);
    sequence.tokens.resize(end);
    drafter_->Forget(sequence.id);
    return sequence;
  }

  SamplingParams sampling;
  int lookahead = 4;
  int max_nodes = 4;
  int window = 0;
  int guesses = 0;

 private:
  std::size_t Verify(Sequence* sequence) {
    const Proposal& proposal = sequence->proposal;
    EXPECT_LE(proposal.size(), max_nodes);
    rows_.resize(Size(proposal.size() + 1) * kVocabulary);
    for (int node = 0; node <= proposal.size(); ++node) {
      text_ = sequence->tokens;
      const auto path = PathTokens(proposal, node);
      EXPECT_LE(path.size(), Size(lookahead));
      text_.insert(text_.end(), path.begin(), path.end());
      target_(text_, std::span(rows_).subspan(Size(node) * kVocabulary, kVocabulary));
    }
    emitted_.clear();
    const auto choose = [&](int node) {
      const Logits row = Logits(rows_.data()).Row(node, kVocabulary);
      emitted_.push_back(
          sampler_
              .Choose(row, sampling, history_, emitted_, sequence->tokens.size() + emitted_.size())
              .token);
      return emitted_.back();
    };
    const Outcome outcome = VerifySharedNoise(proposal, choose);
    drafter_->Observe({.sequence = sequence->id,
                       .tokens = sequence->tokens,
                       .proposal = &proposal,
                       .outcome = outcome,
                       .logits = Logits(rows_.data()),
                       .sampling = &sampling,
                       .history = &history_,
                       .scope = sequence->scope});
    sequence->tokens.insert(sequence->tokens.end(), emitted_.begin(), emitted_.end());
    ++sequence->rounds;
    return emitted_.size();
  }

  std::unique_ptr<Backend> backend_ = MakeReferenceBackend(Precision::kF32);
  Target target_;
  std::unique_ptr<Drafter> drafter_;
  TokenHistory history_{kVocabulary};
  Sampler sampler_{backend_.get(), kVocabulary};
  SequenceId last_ = 0;
  std::vector<float> rows_;
  std::vector<Token> text_;
  std::vector<Token> emitted_;
};

/// The distinct tokens of a proposal.
inline std::set<Token> TokensOf(const Proposal& proposal) {
  return {proposal.tokens.begin(), proposal.tokens.end()};
}

/// What comes behind a text of the tokens 0 to 7 that counts on.
inline Token Successor(std::span<const Token> text) { return (text.back() + 1) % 8; }

/// Behind token t the likeliest are t + 1, t + 2 ... in that order.
inline void Descending(std::span<const Token> text, std::span<float> row) {
  for (int i = 0; i < 8; ++i) row[(text.back() + 1 + i) % 8] = static_cast<float>(8 - i);
}

}  // namespace foretoken
