#pragma once

#include <cstdint>
#include <string>

#include "foretoken/histogram.h"
#include "foretoken/speculation.h"

namespace foretoken {

/// Blocks in each state. At rest free + cached + used == total.
struct KvUsage {
  std::int64_t total = 0;
  std::int64_t free = 0;    ///< Hold nothing.
  std::int64_t cached = 0;  ///< Held by the prefix cache only; reclaimed least recently used first.
  std::int64_t used = 0;    ///< Referenced by at least one sequence.
};

/// Passes of the speculator, of no prompt, and how long they took with all that belongs to them.
struct DraftPasses {
  std::int64_t passes = 0;
  std::int64_t rows = 0;
  std::int64_t ns = 0;

  DraftPasses& operator+=(const DraftPasses& more) {
    passes += more.passes;
    rows += more.rows;
    ns += more.ns;
    return *this;
  }
};

/// Times of rounds in which every decoding sequence had a proposal or none was due; nanoseconds.
struct EngineStats {
  Histogram target;   ///< One target pass.
  Histogram wait;     ///< Waiting for a proposal: drafting in SD, just-in-time drafts in SSD.
  Histogram host;     ///< The rest of a round: choosing, verifying, emitting, planning.
  Histogram hit_gap;  ///< End of a pass to start of the next, all sequences hit.
  Histogram choose;   ///< Noise and choice of all visited rows of a round.
  std::int64_t passes = 0;
  std::int64_t rows = 0;
  DraftPasses draft;  ///< Passes of the speculator (SSD).
};

/// What came of an engine's draft that follows its traffic (EngineOptions::learning).
struct LearningReport {
  std::string candidate;  ///< In use; empty: the draft that the engine began with.
  /// Tokens a round with the draft in use, on the texts that it was last judged by.
  double tokens_per_round = 0;
  std::int64_t captured = 0;         ///< Texts written as captures.
  std::int64_t captured_tokens = 0;  ///< Tokens of the texts written as captures.
  std::int64_t held_back = 0;        ///< Texts held back to judge drafts by.
  std::int64_t left_out = 0;         ///< Texts that came too fast to be written.
  std::int64_t judged = 0;           ///< Drafts of a trainer that were judged.
  std::int64_t kept = 0;             ///< Judged drafts that were used from then on.
  /// Drafts that were used, and that the draft before them replaced again.
  std::int64_t rolled_back = 0;
  std::string failure;  ///< Why no captures are written; empty: they are.
};

/// What rounds of a mode brought and what had been predicted for them.
struct ModeReport {
  std::int64_t rounds = 0;
  double tokens_per_second = 0;  ///< Measured; older rounds count less.
  double predicted = 0;          ///< Over the same rounds.
  double correction = 1;         ///< Applied to predictions of the mode.
};

/// What planning has done so far.
struct PlannerReport {
  ByMode<ModeReport> modes;
  std::int64_t replans = 0;
  std::int64_t switches = 0;  ///< Changes of mode.
  double replan_us = 0;       ///< Mean time of one.
  /// What is predicted now to be fastest, of the batch that there was last, by how much, and why.
  /// Empty: nothing was planned.
  std::string reason;
};

}  // namespace foretoken
