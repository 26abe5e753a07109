#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "draft/draft_model.h"
#include "ssd/channel.h"
#include "ssd/row_cost.h"
#include "ssd/speculated_sequence.h"

namespace foretoken {

/// SSD's speculator (Algorithm 1 of the paper, draft side): prepares, while the target verifies,
/// chains for the likely outcomes, one draft pass at a time over all branches, and streams each
/// token to the engine as soon as it exists. An outcome interrupts the pass under way.
///
/// Runs on one thread with its own device; everything it knows came through the channel.
class Speculator {
 public:
  Speculator(LlamaModel* draft, Channel* channel);
  ~Speculator();

  /// Serves the channel until a shutdown message comes or `stop` returns true (asked at least
  /// every 50 ms).
  void Run(bool (*stop)(void* context), void* context);

 private:
  struct BranchRow {
    SpeculatedSequence* sequence;
    Branch* branch;
    double score;
  };

  /// Waits a bounded time for a record while there are sequences. False if none came.
  bool SpinWhileLive();
  /// Handles every waiting record. False at shutdown.
  bool HandleMessages();
  bool Handle(std::span<const std::byte> record);
  void Reserve();
  void Open(const OpenMessage& message);
  SpeculatedSequence* Find(SequenceId sequence);

  /// One draft pass over the rows that matter most. False when there is nothing to prepare.
  bool Step();
  void CollectTrunkRows(bool only_jit);
  void CollectBranchRows();
  void TakeTrunkRows(const float* logits, std::size_t* row);
  void TakeBranchRows(const float* logits, std::size_t row);
  void SendBranchTokens(const BranchTokensMessage& message);
  void FinishJit(SpeculatedSequence* sequence);
  Ranking RankRow(const float* logits, const SpeculatedSequence& sequence,
                  std::span<const Token> path);
  void DelayForTests();

  LlamaModel* model_;
  Channel* channel_;
  std::optional<ConfigureMessage> config_;
  std::unique_ptr<DraftModel> draft_;
  std::vector<std::unique_ptr<SpeculatedSequence>> sequences_;
  // Rows of the pass under way, in batch order.
  std::vector<std::pair<SpeculatedSequence*, std::int32_t>> trunk_rows_;  // Sequence, end position.
  std::vector<BranchRow> branch_rows_;
  RowCost row_cost_;
  std::minstd_rand delay_noise_;
};

}  // namespace foretoken
